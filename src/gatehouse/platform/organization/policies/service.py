"""Changes the policies for sessions, second factors and retention. When a response is sent, the change is active on
every worker."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import BadRequest, FieldFault, Unprocessable
from gatehouse.foundation.identity import CallerKind
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.policies import schemas
from gatehouse.platform.organization.policies.table import (
    lacks_second_factor,
    level_forced_by,
    read_mfa_policy,
    read_session_policy,
)
from gatehouse.platform.organization.policies.values import read_retention_policy
from gatehouse.platform.organization.tenants.sources import sources_of
from gatehouse.platform.organization.tenants.stored import store_changes
from gatehouse.platform.organization.tenants.table import TenantRecord


class CallerHasNoFactor(BadRequest):
    """The policy would lock out the caller, because reverting it would require a second factor too."""

    def __init__(self) -> None:
        super().__init__(
            "This policy would require a second factor at once, and you have none that the organization accepts."
            " Enrol a factor first (POST /api/auth/mfa/totp), or set grace_period_hours above 0.",
            code="caller_has_no_factor",
        )


class IdleLongerThanSession(Unprocessable):
    def __init__(self, session_timeout_minutes: int) -> None:
        message = f"must not be longer than the session, which ends after {session_timeout_minutes} minutes"
        super().__init__(faults=[FieldFault("idle_timeout_minutes", message)])


def session_policy_in_force(tenant: TenantRecord) -> schemas.SessionPolicy:
    rules: dict[str, Any] = msgspec.to_builtins(read_session_policy(tenant.session_policy))
    return schemas.SessionPolicy(**rules, sources=sources_of(rules, tenant.session_policy))


def set_session_policy(change: Change, tenant: TenantRecord, changes: Mapping[str, Any]) -> None:
    """Change the session policy. Raises `IdleLongerThanSession`."""
    before = read_session_policy(tenant.session_policy)
    after = read_session_policy({**tenant.session_policy, **changes})
    if after.idle_timeout_minutes > after.session_timeout_minutes:
        if "idle_timeout_minutes" in changes:
            raise IdleLongerThanSession(after.session_timeout_minutes)
        after = msgspec.structs.replace(after, idle_timeout_minutes=after.session_timeout_minutes)
    _store(change, tenant, "session_policy", before, after)


async def mfa_policy_in_force(session: AsyncSession, tenant: TenantRecord) -> schemas.MfaPolicy:
    """Return the stored policy. If the configuration entry `mfa_required` is true, its level is `required`."""
    rules: dict[str, Any] = msgspec.structs.asdict(read_mfa_policy(tenant.mfa_policy))
    sources = sources_of(rules, tenant.mfa_policy)
    forced_by = await level_forced_by(session)
    if forced_by is not None:
        rules["enforcement_level"], sources["enforcement_level"] = "required", forced_by
    return schemas.MfaPolicy(**rules, sources=sources)


async def require_caller_factor(change: Change) -> None:
    """Check after a change of the policy that the caller is not locked out. Raises `CallerHasNoFactor`."""
    caller = change.caller
    await change.session.flush()
    # Only users with a session need a second factor; OAuth clients and API keys do not.
    user_id = caller.user_id if caller is not None and caller.kind is CallerKind.USER else None
    if user_id is not None and await lacks_second_factor(change.session, user_id):
        raise CallerHasNoFactor


async def set_mfa_policy(change: Change, tenant: TenantRecord, changes: Mapping[str, Any]) -> schemas.MfaPolicy:
    """Change the policy for second factors. Raises `CallerHasNoFactor`."""
    before = read_mfa_policy(tenant.mfa_policy)
    after = read_mfa_policy({**tenant.mfa_policy, **changes})
    if after.enforcement_level != before.enforcement_level:
        # The grace period starts now. Only a change of the level starts it again.
        tenant.mfa_policy_changed_at = utc_now()
    _store(change, tenant, "mfa_policy", before, after)
    await require_caller_factor(change)
    return await mfa_policy_in_force(change.session, tenant)


def set_retention_policy(change: Change, tenant: TenantRecord, changes: Mapping[str, Any]) -> None:
    before = read_retention_policy(tenant.retention_policy)
    after = read_retention_policy({**tenant.retention_policy, **changes})
    store_changes(change, tenant, "retention_policy", before, after)


def _store(change: Change, tenant: TenantRecord, name: str, before: msgspec.Struct, after: msgspec.Struct) -> None:
    """Store a policy that is part of the replica of each worker."""
    if store_changes(change, tenant, name, before, after):
        change.touch("tenant", tenant.id, urgent=True)
