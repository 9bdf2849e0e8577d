"""Limits on the number of an organization's rows are respected by concurrent requests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.contract.conftest import certificate
from tests.support.platform import RunningPlatform, Tenant

import gatehouse.platform

#: The number of concurrent requests.
_PARALLEL_REQUESTS = 6

CERTIFICATE = certificate()

Create = Callable[[httpx2.AsyncClient, str, int], Awaitable[httpx2.Response]]


def _post(path: str, **body: Any) -> Create:
    """Return a function that posts the body. `NAME` is replaced by a name for each request, and `PARENT` by the id of a
    group or conversation."""

    def fill(value: Any, parent: str, number: int) -> Any:
        if isinstance(value, str):
            return value.replace("NAME", f"n{number}").replace("PARENT", parent)
        if isinstance(value, dict):
            return {key: fill(item, parent, number) for key, item in value.items()}
        return [fill(item, parent, number) for item in value] if isinstance(value, list) else value

    async def create(client: httpx2.AsyncClient, parent: str, number: int) -> httpx2.Response:
        return await client.post(path.replace("PARENT", parent), json=fill(body, parent, number))

    return create


P = "gatehouse.platform"
#: For each family: the module with its limit, and the request that creates a row.
FAMILIES: dict[str, tuple[str, Create]] = {
    "access requests": (
        f"{P}.governance.access_requests.service.MAX_PENDING",
        _post("/api/access-requests", kind="model", model="their-own/NAME", reason="x"),
    ),
    "alerts": (
        f"{P}.operations.alerts.service.MAX_ALERT_RULES",
        _post("/api/alerts", name="NAME", metric_type="cost", threshold=1, comparison="gt", window_minutes=1),
    ),
    "budgets": (
        f"{P}.routing.budgets.service.MAX_BUDGETS",
        _post("/api/admin/budgets", scope_type="group", scope_id="PARENT", period="month", limit_requests=10),
    ),
    "compliance bundles": (
        f"{P}.governance.compliance_bundles.service.MAX_BUNDLES",
        _post(
            "/api/admin/compliance-bundles", name="NAME", regulatory_framework="PCI-DSS", version="1",
            seed_rule_mappings=["credit_card"],
        ),
    ),
    "content filters": (
        f"{P}.governance.content_filters.service.MAX_FILTERS",
        _post(
            "/api/admin/content-filters/", name="NAME", filter_type="keyword_block", config={"keywords": ["x"]},
            scope="org", priority=1,
        ),
    ),
    "custom DLP patterns": (
        f"{P}.governance.dlp_customization.service.MAX_CUSTOM_PATTERNS",
        _post(
            "/api/admin/dlp-rules/custom-patterns", name="NAME", entity_type="x", pattern="x", action_tier="log_only"
        ),
    ),
    "DLP rules": (
        f"{P}.governance.dlp_rules.service.MAX_RULES",
        _post(
            "/api/admin/dlp-rules/", detector_name="NAME", detector_type="regex", entity_type="x",
            action_tier="log_only", config_json={"pattern": "x"},
        ),
    ),
    "groups": (f"{P}.access.groups.service.MAX_GROUPS", _post("/api/admin/groups", name="NAME")),
    "model access": (
        f"{P}.access.model_access.service.MAX_RULES",
        _post("/api/admin/groups/PARENT/model-access", model_id="their-own/model", access_type="ALLOW"),
    ),
    "model registry": (
        f"{P}.governance.model_registry.service.MAX_MODELS",
        _post("/api/admin/models", provider="their-own", model_id="NAME"),
    ),
    "mail domains": (
        f"{P}.organization.allowed_domains.service.MAX_DOMAINS",
        _post("/api/v1/admin/org/allowed-domains", domain="NAME.example.com"),
    ),
    "policies": (
        f"{P}.governance.policies.service.MAX_RULES",
        _post("/api/admin/policies", name="NAME", condition="false", action="LOG"),
    ),
    "providers": (
        f"{P}.routing.providers.service.MAX_PROVIDERS",
        _post(
            "/api/admin/providers/byoe", id="NAME", name="Own", base_url="http://127.0.0.1:9/v1", format="openai",
            models=[{
                "model_id": "m", "display_name": "M", "context_window": 1000, "input_cost_per_1k": 0,
                "output_cost_per_1k": 0,
            }],
        ),
    ),
    "routing policies": (
        f"{P}.routing.cost_routing.service.MAX_POLICIES",
        _post("/api/admin/cost-routing/policies", name="NAME", strategy="cost_optimized", enabled=False),
    ),
    "SAML providers": (
        f"{P}.access.saml.service.MAX_IDPS",
        _post(
            "/api/admin/saml/idp", name="NAME", entity_id="https://NAME.test", sso_url="https://idp.test/",
            x509_cert=CERTIFICATE,
        ),
    ),
    "SCIM tokens": (f"{P}.access.scim.service.MAX_TOKENS", _post("/api/admin/scim/token", description="NAME")),
    "share links": (
        f"{P}.conversations.share_links.service._MAX_LINKS", _post("/api/conversations/PARENT/share_links"),
    ),
    "webhooks": (
        f"{P}.operations.webhooks.service.MAX_WEBHOOKS",
        _post("/api/admin/webhooks/", name="NAME", url="https://8.8.8.8/", events=["dlp_trigger"], secret="x" * 16),
    ),
    "MCP servers": (
        f"{P}.mcp.servers.service.MAX_MCP_SERVERS",
        _post("/api/v1/admin/mcp/servers", name="NAME", url="https://8.8.8.8/mcp"),
    ),
    "MCP access rules": (
        f"{P}.mcp.access.service.MAX_ACCESS_RULES",
        _post(
            "/api/v1/admin/mcp/servers/PARENT/access", subject_type="group", subject_id="PARENT", access_type="ALLOW"
        ),
    ),
    "model aliases": (
        f"{P}.routing.model_aliases.service.MAX_MODEL_ALIASES",
        _post(
            "/api/v1/admin/model-aliases", name="NAME", deployments=[{"provider": "their-own", "model_id": "model"}]
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
async def test_creations_that_arrive_together_stay_within_the_limit(
    platform: RunningPlatform, tenant: Tenant, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, create = FAMILIES[family]
    client = tenant.admin.client
    parents = [str(uuid4()) for _ in range(_PARALLEL_REQUESTS)]
    if family in {"budgets", "model access", "model aliases"}:
        await platform.add_provider(tenant.id, "their-own", "byoe", "model")
        for group in parents:
            platform.sql("INSERT INTO groups (id, tenant_id, name) VALUES (%s, %s, %s)", [group, tenant.id, group])
    if family == "access requests":
        names = [f"n{number}" for number in range(_PARALLEL_REQUESTS)]
        await platform.add_provider(tenant.id, "their-own", "byoe", *names)
        platform.sql("UPDATE model_configs SET access = 'restricted' WHERE tenant_id = %s", [tenant.id])
    if family == "MCP access rules":
        for number, parent in enumerate(parents):
            platform.sql("INSERT INTO groups (id, tenant_id, name) VALUES (%s, %s, %s)", [parent, tenant.id, parent])
            platform.sql(
                "INSERT INTO mcp_servers (id, tenant_id, name, url, enabled, access, timeout_ms)"
                " VALUES (%s, %s, %s, 'https://8.8.8.8', true, 'open', 1000)",
                [parent, tenant.id, f"n{number}"],
            )
    if family == "share links":
        conversation = await client.post("/api/conversations", json={"title": "x"})
        parents = [conversation.json()["id"]] * _PARALLEL_REQUESTS
    monkeypatch.setattr(limit, 1)
    answers = await asyncio.gather(*(create(client, parent, number) for number, parent in enumerate(parents)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * (_PARALLEL_REQUESTS - 1), answers[0].text


#: Families with a limit for each user. They have their own tests.
LIMITED_BY_USER = {f"{P}.access.api_keys.service", f"{P}.access.mfa.enrolment"}
#: Families that read all rows under a lock and count them, instead of `require_room`.
COUNTED_BY_THEMSELVES = {f"{P}.organization.allowed_domains.service", f"{P}.routing.providers.service"}


def test_every_family_with_a_limit_is_tested_here() -> None:
    source = Path(gatehouse.platform.__file__).parent
    users = [path for path in source.rglob("*.py") if "await require_room(" in path.read_text("utf-8")]
    modules = {".".join((P, *path.relative_to(source).with_suffix("").parts)) for path in users}
    assert modules | COUNTED_BY_THEMSELVES == LIMITED_BY_USER | {
        limit.rpartition(".")[0] for limit, _ in FAMILIES.values()
    }


async def test_keys_made_together_stay_within_a_users_limit(platform: RunningPlatform, tenant: Tenant) -> None:
    limit = platform.host.settings.max_api_keys_per_user
    platform.sql(
        "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description)"
        " SELECT gen_random_uuid(), %s, %s, 'gk_', uuid_send(gen_random_uuid()), 'x' FROM generate_series(1, %s)",
        [tenant.id, tenant.user.id, limit - 1],
    )
    create = _post("/api/auth/api-keys", description="NAME")
    answers = await asyncio.gather(*(create(tenant.user.client, "", number) for number in range(_PARALLEL_REQUESTS)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * (_PARALLEL_REQUESTS - 1)
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert refused.json()["detail"] == f"A user has at most {limit} API keys. Remove one that is not used any more."
    # The keys of another user are counted separately.
    assert (await create(tenant.auditor.client, "", 0)).status_code == 201
