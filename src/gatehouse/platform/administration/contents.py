"""The families of the administration API: their routers, error formats, and exceptions from common rules."""

from typing import Final

from fastapi import APIRouter

from gatehouse.foundation.http.envelopes import CODED, DETAIL, GATEWAY, NAMED, ErrorFormat
from gatehouse.platform.access.accounts.routes import router as accounts
from gatehouse.platform.access.api_keys.routes import router as api_keys
from gatehouse.platform.access.browser.routes import router as browser_sessions
from gatehouse.platform.access.groups.routes import router as groups
from gatehouse.platform.access.mail_test.routes import router as mail_test
from gatehouse.platform.access.mfa.routes import router as mfa
from gatehouse.platform.access.model_access.routes import router as model_access
from gatehouse.platform.access.oauth_clients.routes import router as oauth_clients
from gatehouse.platform.access.openid.routes import router as openid
from gatehouse.platform.access.pages.rendering import ERROR_FORMAT as PAGES_ERROR_FORMAT
from gatehouse.platform.access.pages.routes import router as pages
from gatehouse.platform.access.preferences.routes import router as preferences
from gatehouse.platform.access.saml.errors import ERROR_FORMAT as SAML_ERROR_FORMAT
from gatehouse.platform.access.saml.routes import router as saml
from gatehouse.platform.access.scim.provisioning import router as provisioning
from gatehouse.platform.access.scim.routes import router as scim
from gatehouse.platform.access.sessions.routes import of_users as user_sessions
from gatehouse.platform.access.sessions.routes import router as sessions
from gatehouse.platform.access.sign_in.factors import router as sign_in_factors
from gatehouse.platform.access.sign_in.mailed_links import router as sign_in_mailed_links
from gatehouse.platform.access.sign_in.new_password import router as sign_in_new_password
from gatehouse.platform.access.sign_in.routes import router as sign_in
from gatehouse.platform.access.sign_in.sign_out import router as sign_out
from gatehouse.platform.access.tenants.routes import router as tenants
from gatehouse.platform.access.tokens.routes import router as tokens
from gatehouse.platform.access.users.routes import router as users
from gatehouse.platform.batches.batches.routes import router as batches
from gatehouse.platform.batches.files.routes import router as files
from gatehouse.platform.batches.message_batches.routes import router as message_batches
from gatehouse.platform.console.routes import router as console
from gatehouse.platform.conversations.conversations.routes import router as conversations
from gatehouse.platform.conversations.share_links.routes import router as share_links
from gatehouse.platform.governance.access_requests.routes import router as access_requests
from gatehouse.platform.governance.approvals.routes import router as approvals
from gatehouse.platform.governance.compliance_bundles.routes import router as compliance_bundles
from gatehouse.platform.governance.config_import.routes import router as config_import
from gatehouse.platform.governance.content_filters.routes import router as content_filters
from gatehouse.platform.governance.dlp_customization.routes import router as dlp_customization
from gatehouse.platform.governance.dlp_library.routes import router as dlp_library
from gatehouse.platform.governance.dlp_rules.routes import router as dlp_rules
from gatehouse.platform.governance.dlp_samples.routes import router as dlp_samples
from gatehouse.platform.governance.dlp_trials.routes import router as dlp_trials
from gatehouse.platform.governance.model_registry.errors import ERROR_FORMAT as MODEL_REGISTRY_ERROR_FORMAT
from gatehouse.platform.governance.model_registry.routes import router as model_registry
from gatehouse.platform.governance.policies.routes import router as policies
from gatehouse.platform.mcp.access.routes import router as mcp_access
from gatehouse.platform.mcp.callable.routes import router as mcp_callable
from gatehouse.platform.mcp.connections.pages import router as mcp_connection_pages
from gatehouse.platform.mcp.connections.routes import router as mcp_connections
from gatehouse.platform.mcp.resource.routes import router as mcp_resource
from gatehouse.platform.mcp.servers.routes import commands_router as mcp_stdio_commands
from gatehouse.platform.mcp.servers.routes import router as mcp_servers
from gatehouse.platform.mcp.tools.routes import all_tools_router as all_mcp_tools
from gatehouse.platform.mcp.tools.routes import router as mcp_tools
from gatehouse.platform.operations.alerts.routes import router as alerts
from gatehouse.platform.operations.health.probes import router as probes
from gatehouse.platform.operations.health.routes import router as health
from gatehouse.platform.operations.maintenance.routes import router as maintenance
from gatehouse.platform.operations.outposts.routes import router as outposts
from gatehouse.platform.operations.siem.routes import router as siem
from gatehouse.platform.operations.webhooks.routes import router as webhooks
from gatehouse.platform.organization.allowed_domains.routes import router as allowed_domains
from gatehouse.platform.organization.dlp_sampling.routes import router as dlp_sampling
from gatehouse.platform.organization.feature_flags.routes import router as feature_flags
from gatehouse.platform.organization.ip_allowlist.routes import router as ip_allowlist
from gatehouse.platform.organization.legal_hold.routes import router as legal_hold
from gatehouse.platform.organization.policies.routes import router as organization_policies
from gatehouse.platform.organization.request_fields.routes import router as request_fields
from gatehouse.platform.organization.settings.routes import router as settings
from gatehouse.platform.organization.system_config.routes import router as system_config
from gatehouse.platform.records.audit.routes import router as audit
from gatehouse.platform.records.dlp_events.routes import router as dlp_events
from gatehouse.platform.records.spend.routes import router as spend
from gatehouse.platform.records.usage.routes import router as usage
from gatehouse.platform.routing.budgets.routes import router as budgets
from gatehouse.platform.routing.byoe.routes import router as byoe
from gatehouse.platform.routing.cost_routing.routes import router as cost_routing
from gatehouse.platform.routing.kill_switch.routes import router as kill_switch
from gatehouse.platform.routing.model_aliases.routes import router as model_aliases
from gatehouse.platform.routing.model_catalog.routes import router as model_catalog
from gatehouse.platform.routing.own_usage.routes import router as own_usage
from gatehouse.platform.routing.provider_credentials.routes import router as provider_credentials
from gatehouse.platform.routing.providers.routes import router as providers

FAMILIES: Final[tuple[APIRouter, ...]] = (
    accounts,
    api_keys,
    sessions,
    sign_out,
    browser_sessions,
    mfa,
    users,
    user_sessions,
    preferences,
    mail_test,
    # Before groups, because the path parameter {group_id} would match `model-access`.
    model_access,
    groups,
    scim,
    provisioning,
    kill_switch,
    oauth_clients,
    tokens,
    openid,
    saml,
    pages,
    sign_in,
    sign_in_factors,
    sign_in_new_password,
    sign_in_mailed_links,
    console,
    # Before byoe: PATCH /providers/byoe/config is the configuration of a provider with the id `byoe`.
    providers,
    provider_credentials,
    byoe,
    # Before model_registry, because the path parameter {registered_model_id} would match `catalog`.
    model_catalog,
    model_registry,
    budgets,
    cost_routing,
    tenants,
    config_import,
    settings,
    allowed_domains,
    organization_policies,
    legal_hold,
    ip_allowlist,
    request_fields,
    dlp_sampling,
    feature_flags,
    system_config,
    probes,
    health,
    maintenance,
    alerts,
    webhooks,
    siem,
    outposts,
    approvals,
    access_requests,
    compliance_bundles,
    content_filters,
    policies,
    # Before dlp_rules, because the path parameter {rule_id} would match the names in their paths.
    dlp_library,
    dlp_customization,
    dlp_samples,
    dlp_trials,
    dlp_rules,
    audit,
    dlp_events,
    usage,
    spend,
    own_usage,
    # Before conversations, because the path parameter {conversation_id} would match `shared`.
    share_links,
    conversations,
    model_aliases,
    mcp_servers,
    mcp_stdio_commands,
    mcp_tools,
    all_mcp_tools,
    mcp_access,
    mcp_callable,
    mcp_connections,
    mcp_connection_pages,
    mcp_resource,
    files,
    batches,
    message_batches,
)  # fmt: skip

#: Error formats by path prefix, for families that do not use the `detail` format.
ERROR_FORMATS: Final[dict[str, ErrorFormat]] = {
    "/oauth/authorize": PAGES_ERROR_FORMAT,
    "/login": PAGES_ERROR_FORMAT,
    "/console": PAGES_ERROR_FORMAT,
    "/api/saml": SAML_ERROR_FORMAT,
    "/logout": PAGES_ERROR_FORMAT,
    "/connect": PAGES_ERROR_FORMAT,
    "/api/v1/admin/org": NAMED,
    "/api/v1/admin/org/feature-flags": NAMED,
    "/api/v1/admin/retention": NAMED,
    "/api/admin/system": NAMED,
    "/api/health": NAMED,
    "/metrics": NAMED,
    "/api/alerts": DETAIL.validating(400),
    "/api/v1/admin/kill-switch": DETAIL.validating(400),
    "/api/admin/dlp-rules": DETAIL.validating(400),
    "/api/admin/models": MODEL_REGISTRY_ERROR_FORMAT,
    "/api/admin/model-inventory-export": MODEL_REGISTRY_ERROR_FORMAT,
    "/api/admin/models/catalog": DETAIL,
    "/api/admin/content-filters": DETAIL.validating(400),
    "/api/admin/cost-routing": CODED,
    "/api/admin/policies": DETAIL.validating(400),
    "/v1/outposts": CODED,
    "/api/admin/webhooks": DETAIL.validating(400),
    "/api/v1/admin/webhooks": DETAIL.validating(400),
    "/v1/files": GATEWAY,
    "/v1/batches": GATEWAY,
}

#: Fields that change without an update of their resource: counters, times of use, and observed states.
MOVING_FIELDS: Final = frozenset(
    {
        "available_models", "current", "health", "last_error", "last_health_check", "last_login", "last_seen_at",
        "last_triggered_at", "last_used", "last_used_at", "member_count", "message_count", "request_count_30d",
    }
)  # fmt: skip

#: Maps the path prefix under which resources are changed to the prefix under which they are read, where the two differ.
SHOWN_ELSEWHERE: Final = {"/api/admin/providers/byoe/": "/api/admin/providers/"}

#: Path prefixes that ignore unknown query parameters: protocols that require it, probes, and browser pages.
ANY_PARAMETERS: Final = (
    "/.well-known/", "/oauth/", "/api/oauth/", "/api/saml/", "/api/scim/", "/console", "/connect", "/login", "/logout",
    "/health",
    "/api/health/", "/metrics", "/api/conversations/shared/",
    # Clients of Anthropic's beta API add `beta=true`.
    "/v1/messages/batches",
)  # fmt: skip
