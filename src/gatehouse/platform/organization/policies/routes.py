"""Endpoints of the policies for sessions, second factors and retention."""

from typing import Any

import msgspec
from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.organization.policies import schemas, service
from gatehouse.platform.organization.policies.table import last_run
from gatehouse.platform.organization.policies.values import read_retention_policy
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.organization.tenants.sources import sources_of
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/api/v1/admin", tags=["Organization"], responses=RESPONSES)


@router.get("/org/session-policy", response_model=schemas.SessionPolicy)
async def read_session_policy_in_force(caller: AdminReader, tenant: OwnTenant) -> schemas.SessionPolicy:
    """Returns the lifetimes of sessions, and the maximum number of sessions of a user, with the source of each
    value."""
    return service.session_policy_in_force(tenant)


@router.put("/org/session-policy", response_model=schemas.SessionPolicy)
async def update_session_policy(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.SessionPolicyUpdate, change: Changing
) -> schemas.SessionPolicy:
    """Changes the fields in the body. When the response arrives, the change also applies to existing sessions."""
    service.set_session_policy(change, tenant, body.sent())
    return service.session_policy_in_force(tenant)


@router.get("/org/mfa-policy", response_model=schemas.MfaPolicy)
async def read_mfa_policy_in_force(caller: AdminReader, tenant: OwnTenant, session: Session) -> schemas.MfaPolicy:
    """Returns the active policy for second factors, with the source of each value. If the configuration entry
    `mfa_required` is true, the level is `required`."""
    return await service.mfa_policy_in_force(session, tenant)


@router.put(
    "/org/mfa-policy",
    response_model=schemas.MfaPolicy,
    responses={400: {"description": "`caller_has_no_factor`: the policy would require a factor that you lack."}},
)
async def update_mfa_policy(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.MfaPolicyUpdate, change: Changing
) -> schemas.MfaPolicy:
    """Changes the fields in the body. When the response arrives, the change is active. The level `required` starts
    the grace period of `grace_period_hours`."""
    return await service.set_mfa_policy(change, tenant, body.sent())


@router.get("/retention/policy", response_model=schemas.RetentionPolicy)
async def read_retention_policy_in_force(
    caller: AdminReader, tenant: OwnTenant, session: Session
) -> schemas.RetentionPolicy:
    """Returns the retention policy of records, and the result of the archiver's last run."""
    return await _retention(session, tenant)


@router.put("/retention/policy", response_model=schemas.RetentionPolicy)
async def update_retention_policy(
    caller: AdminStepUp, tenant: OwnTenant, body: schemas.RetentionPolicyUpdate, change: Changing
) -> schemas.RetentionPolicy:
    """Changes the fields in the body. A shorter window hides records as soon as the response arrives. The archiver
    moves them at its next run."""
    service.set_retention_policy(change, tenant, body.sent())
    return await _retention(change.session, tenant)


async def _retention(session: AsyncSession, tenant: TenantRecord) -> schemas.RetentionPolicy:
    run = await last_run(session)
    policy: dict[str, Any] = msgspec.to_builtins(read_retention_policy(tenant.retention_policy))
    shown = schemas.RetentionPolicy(**policy, sources=sources_of(policy, tenant.retention_policy))
    if run is not None:
        shown.last_archival_run, shown.last_archival_status, shown.rows_archived_last_run = run
    return shown
