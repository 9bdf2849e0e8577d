"""The rules of the policies. They are in force on every worker when the answer comes."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import CallerKind
from gatehouse.platform.change import Change
from gatehouse.platform.organization.policies.errors import CallerHasNoFactor, IdleLongerThanSession
from gatehouse.platform.organization.policies.table import (
    read_mfa_policy,
    read_session_policy,
    second_factor_in_force,
    would_be_asked,
)
from gatehouse.platform.organization.policies.values import (
    MfaPolicy,
    RetentionPolicy,
    SessionPolicy,
    read_retention_policy,
)
from gatehouse.platform.organization.tenants.stored import store
from gatehouse.platform.organization.tenants.table import TenantRecord


def set_session_policy(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> SessionPolicy:
    """Raises `IdleLongerThanSession`."""
    before = read_session_policy(tenant.session_policy)
    after = read_session_policy({**tenant.session_policy, **sent})
    if after.idle_timeout_minutes > after.session_timeout_minutes:
        if "idle_timeout_minutes" in sent:
            raise IdleLongerThanSession(after.session_timeout_minutes)
        after = msgspec.structs.replace(after, idle_timeout_minutes=after.session_timeout_minutes)
    _store(change, tenant, "session_policy", before, after)
    return after


async def mfa_policy_in_force(session: AsyncSession, tenant: TenantRecord) -> MfaPolicy:
    """As it is set, but `required` where the configuration `mfa_required` says so."""
    policy = read_mfa_policy(tenant.mfa_policy)
    return msgspec.structs.replace(policy, enforcement_level=(await second_factor_in_force(session)).level)


async def check_caller_is_let_in(change: Change) -> None:
    """After a change of who is asked for a second factor. Raises `CallerHasNoFactor`."""
    caller = change.caller
    await change.session.flush()
    # Machines and keys are asked for none.
    user_id = caller.user_id if caller is not None and caller.kind is CallerKind.USER else None
    if user_id is not None and await would_be_asked(change.session, user_id):
        raise CallerHasNoFactor


async def set_mfa_policy(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> MfaPolicy:
    """Raises `CallerHasNoFactor`."""
    before = read_mfa_policy(tenant.mfa_policy)
    after = read_mfa_policy({**tenant.mfa_policy, **sent})
    if after.enforcement_level != before.enforcement_level:
        # From here the grace period counts; whatever else changes does not begin it anew.
        tenant.mfa_policy_changed_at = utc_now()
    _store(change, tenant, "mfa_policy", before, after)
    await check_caller_is_let_in(change)
    return await mfa_policy_in_force(change.session, tenant)


def set_retention_policy(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> RetentionPolicy:
    before = read_retention_policy(tenant.retention_policy)
    after = read_retention_policy({**tenant.retention_policy, **sent})
    store(change, tenant, "retention_policy", before, after)
    return after


def _store(change: Change, tenant: TenantRecord, name: str, before: msgspec.Struct, after: msgspec.Struct) -> None:
    """Each worker's replica holds what follows from it."""
    if store(change, tenant, name, before, after):
        change.touch("tenant", tenant.id, urgent=True)
