"""Changes settings in one transaction, each with the service of its family."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.organization.allowed_domains import service as allowed_domains
from gatehouse.platform.organization.allowed_domains.table import all_domains
from gatehouse.platform.organization.feature_flags import service as feature_flags
from gatehouse.platform.organization.feature_flags.table import with_defaults
from gatehouse.platform.organization.ip_allowlist import service as ip_allowlist
from gatehouse.platform.organization.ip_allowlist.values import read as read_allowlist
from gatehouse.platform.organization.policies import service as policies
from gatehouse.platform.organization.policies.table import read_session_policy
from gatehouse.platform.organization.settings.schemas import Settings, SettingsUpdate
from gatehouse.platform.organization.tenants.errors import SlugTaken
from gatehouse.platform.organization.tenants.sources import sources_of
from gatehouse.platform.organization.tenants.table import TenantRecord

#: Columns of the fields that belong to this family.
_OWN_COLUMNS: Final = {"display_name": "name", "slug": "slug", "contact_email": "contact_email", "timezone": "timezone"}
_SESSION_FIELDS: Final = ("session_timeout_minutes", "idle_timeout_minutes")


class SlugOfOperators(Conflict):
    code = "slug_of_operators"
    message = "slug: the slug of the platform operators' organization is `default` and cannot be changed."


async def to_shown(session: AsyncSession, tenant: TenantRecord) -> Settings:
    sessions = read_session_policy(tenant.session_policy)
    flags = with_defaults(tenant.feature_flags)
    return Settings(
        org_id=str(tenant.id),
        display_name=tenant.name,
        slug=tenant.slug,
        allowed_domains=[row.domain for row in await all_domains(session)],
        contact_email=tenant.contact_email,
        timezone=tenant.timezone,
        session_timeout_minutes=sessions.session_timeout_minutes,
        idle_timeout_minutes=sessions.idle_timeout_minutes,
        ip_allowlist=list(read_allowlist(tenant.ip_allowlist).cidrs),
        feature_flags=flags,
        sources={
            **sources_of(_SESSION_FIELDS, tenant.session_policy),
            **{f"feature_flags.{flag}": source for flag, source in sources_of(flags, tenant.feature_flags).items()},
        },
        created_at=tenant.created_at,
        updated_at=tenant.updated_at,
    )


async def update(change: Change, tenant: TenantRecord, body: SettingsUpdate) -> Settings:
    """Change settings. Raises `SlugTaken`, `SlugOfOperators`, `IdleLongerThanSession`, `CallerAddressExcluded` and
    `TooManyDomains`."""
    changes = body.sent()
    await _set_own(change, tenant, {name: changes[name] for name in _OWN_COLUMNS if name in changes})
    session_changes: dict[str, Any] = {name: changes[name] for name in _SESSION_FIELDS if name in changes}
    if session_changes:
        policies.set_session_policy(change, tenant, session_changes)
    if "feature_flags" in changes:
        for name, enabled in changes["feature_flags"].sent().items():
            feature_flags.switch(change, tenant, name, enabled)
    if "ip_allowlist" in changes:
        cidrs = changes["ip_allowlist"]
        ip_allowlist.update(change, tenant, {"cidrs": cidrs, "enabled": bool(cidrs)})
    if "allowed_domains" in changes:
        await allowed_domains.replace(change, tenant, changes["allowed_domains"])
    await change.session.flush()
    return await to_shown(change.session, tenant)


async def _set_own(change: Change, tenant: TenantRecord, values: Mapping[str, Any]) -> None:
    """Change the fields that belong to this family. Raises `SlugTaken` and `SlugOfOperators`."""
    changed = {name: value for name, value in values.items() if getattr(tenant, _OWN_COLUMNS[name]) != value}
    if not changed:
        return
    if "slug" in changed and tenant.id == DEFAULT_TENANT:
        raise SlugOfOperators
    before = {name: getattr(tenant, _OWN_COLUMNS[name]) for name in changed}
    tenant.assign({_OWN_COLUMNS[name]: value for name, value in changed.items()})
    with unique(SlugTaken):
        await change.session.flush()
    change.record("organization.changed", "organization", tenant.id, **changed, before=before)
    if "timezone" in changed:
        # Budget periods begin at midnight in this time zone.
        change.touch("policy", tenant.id, urgent=True)
