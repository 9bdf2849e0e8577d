"""Creates, updates, provisions and cancels organizations."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, Unprocessable
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.portal import jobs
from gatehouse.portal.change import PortalChange
from gatehouse.portal.members import service as members
from gatehouse.portal.organizations.jobs import deprovision, provision, update_details, update_entitlements
from gatehouse.portal.organizations.schemas import NewOrganization, Organization, OrganizationCreated
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.outposts.jobs import push_trust
from gatehouse.portal.platform_link.client import PlatformClient, PlatformError

#: Maximum time that a request waits for the platform's response.
_PLATFORM_TIMEOUT_SECONDS: Final = 5.0


class PortalSlugTaken(Conflict):
    message = "slug: another organization uses it, or has used it."


class TenantTaken(Conflict):
    message = "tenant_id: the tenant belongs to another organization."


class AlreadyCancelled(Conflict):
    message = "The organization has already been cancelled."


class AlreadyProvisioned(Conflict):
    message = "The organization already exists on the platform."


class TenantUnknown(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("tenant_id", "is not a tenant of the platform")])


async def check_tenant(platform: PlatformClient, new: NewOrganization) -> None:
    """Raises `TenantUnknown` if the platform has no such tenant. While the platform is unavailable, the tenant is
    accepted, and provisioning fails later if it does not exist."""
    if new.tenant_id is None:
        return
    try:
        async with asyncio.timeout(_PLATFORM_TIMEOUT_SECONDS):
            exists = await platform.has_tenant(new.tenant_id)
    except (PlatformError, TimeoutError):
        return
    if not exists:
        raise TenantUnknown


async def create(change: PortalChange, new: NewOrganization) -> OrganizationCreated:
    """Creates the organization with the id in `change`. Raises `PortalSlugTaken`, `TenantTaken`."""
    assert change.org_id is not None
    key, now = tokens.mint_api_key(), utc_now()
    org = OrganizationRow(
        id=change.org_id,
        **new.model_dump(),
        status="active",
        provisioning_status="provisioning",
        key_prefix=key.shown,
        key_digest=key.digest,
        tokens_revoked_before=None,
        created_at=now,
        updated_at=now,
        cancelled_at=None,
    )
    change.session.add(org)
    await _flush(change.session)
    change.record(
        "organization.created", "organization", org.id, slug=org.slug, plan_tier=org.plan_tier, key_prefix=key.shown
    )
    if new.contact_email is not None:
        members.add_owner(change, new.contact_email)
    job_id = await jobs.queue(change.session, provision, org.id)
    return OrganizationCreated(org=Organization.model_validate(org), api_key=key.plaintext, provisioning_job_id=job_id)


async def update(change: PortalChange, org: OrganizationRow, fields: Mapping[str, Any]) -> OrganizationRow:
    changed = org.differing(fields)
    if not changed:
        return org
    org.assign(changed)
    change.record("organization.updated", "organization", org.id, **changed)
    if "plan_tier" in changed:
        await jobs.queue(change.session, update_entitlements, org.id)
    if changed.keys() & {"name", "contact_email"}:
        await jobs.queue(change.session, update_details, org.id)
    return org


async def cancel(change: PortalChange, org: OrganizationRow) -> None:
    """Cancels an organization. Raises `AlreadyCancelled`."""
    if org.status == "cancelled":
        raise AlreadyCancelled
    org.status = "cancelled"
    org.cancelled_at = org.updated_at = utc_now()
    change.record("organization.cancelled", "organization", org.id)
    await jobs.queue(change.session, deprovision, org.id)
    # Withdraw the trust in its outposts separately, so that they are refused even if the tenant cannot be deleted.
    await jobs.queue(change.session, push_trust, None)


async def retry_provisioning(change: PortalChange, org: OrganizationRow) -> UUID:
    """Queues the provisioning again, with the full number of attempts. Returns the id of the job. Raises
    `AlreadyProvisioned`."""
    if org.provisioning_status == "active":
        raise AlreadyProvisioned
    org.provisioning_status = "provisioning"
    org.updated_at = utc_now()
    change.record("organization.provisioning_retried", "organization", org.id)
    return await jobs.queue(change.session, provision, org.id)


async def _flush(session: AsyncSession) -> None:
    """Flushes the session. Raises `PortalSlugTaken`, `TenantTaken` if a constraint is violated."""
    with unique({"organizations_slug": PortalSlugTaken, "organizations_tenant": TenantTaken}):
        await session.flush()
