"""Jobs that create organizations' tenants on the platform, and update and delete them (docs/portal.md,
"Organizations")."""

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.portal.change import PortalChange
from gatehouse.portal.identity import OrgId
from gatehouse.portal.jobs import JobContext, job, queue
from gatehouse.portal.notifications import table as notifications
from gatehouse.portal.outposts.jobs import push_trust
from gatehouse.portal.platform_link.client import PlatformNotConfigured

_READ = text("SELECT id, name, slug, plan_tier, status, provisioning_status, tenant_id, key_prefix, key_digest,"
             " contact_email FROM organizations WHERE id = :id")  # fmt: skip
_ON_PLATFORM = text("SELECT id FROM organizations WHERE status = 'active' AND provisioning_status = 'active'")
_OWNER = text("SELECT email FROM members WHERE org_id = :id AND role = 'owner'")
_PROVISIONED = text(
    "UPDATE organizations SET provisioning_status = 'active', tenant_id = :tenant, updated_at = now() WHERE id = :id"
)
_BIND_OWNER = text(
    "UPDATE members SET platform_sub = :sub, platform_tenant_id = :tenant WHERE org_id = :id AND role = 'owner'"
)
_NOT_PROVISIONED = text(
    "UPDATE organizations SET provisioning_status = :status, updated_at = now()"
    " WHERE id = :id AND provisioning_status = 'provisioning'"
)


class _PortalOrganization(NamedTuple):
    id: OrgId
    name: str
    slug: str
    plan_tier: str
    status: str
    provisioning_status: str
    tenant_id: UUID | None
    key_prefix: str
    key_digest: bytes
    contact_email: str | None

    @property
    def tenant(self) -> UUID:
        """Returns the id of the tenant: `tenant_id` if it is set, else the id of the organization."""
        return self.tenant_id or self.id


async def _failed(session: AsyncSession, org_id: OrgId | None, error: Exception) -> None:
    status = "unknown" if isinstance(error, PlatformNotConfigured) else "failed"
    await session.execute(_NOT_PROVISIONED, {"id": org_id, "status": status})
    if org_id is not None and status == "failed":
        message = f"The organization could not be created on the platform: {error}"[:500]
        await notifications.notify(session, org_id, "provisioning_failed", org_id, message)
    change = PortalChange(session, org_id)
    change.record("organization.provisioning_failed", "organization", org_id, reason=str(error))
    await change.commit()


@job("org_provision", on_failure=_failed)
async def provision(context: JobContext, org_id: OrgId | None) -> None:
    """Creates the tenant with its plan, registers the owner with the first key, and stores the owner's identity on the
    platform."""
    async with context.database.service() as session:
        org = await _read(session, org_id)
        owner = await session.scalar(_OWNER, {"id": org_id})
    if org.status == "cancelled" or org.provisioning_status == "active":
        return
    if org.tenant_id is None:
        await context.platform.make_tenant(org.tenant, slug=org.slug, name=org.name, plan=org.plan_tier)
        # An earlier attempt may have created the tenant with a former name.
        await context.platform.update_tenant(org.tenant, name=org.name, contact_email=org.contact_email)
    else:
        await context.platform.set_plan(org.tenant, org.plan_tier)
    sub = await context.platform.register_owner(
        org.tenant, email=owner, key_prefix=org.key_prefix, digest=org.key_digest
    )
    async with context.database.service() as session:
        await session.execute(_PROVISIONED, {"id": org_id, "tenant": org.tenant})
        if owner is not None:
            await session.execute(_BIND_OWNER, {"id": org_id, "tenant": org.tenant, "sub": sub})
        await notifications.resolve(session, org.id, "provisioning_failed", org.id)
        # Send the trusted authorities to the platform, because outposts may have been registered already.
        await queue(session, push_trust, None)
        change = PortalChange(session, org_id)
        change.record("organization.provisioned", "organization", org_id, tenant_id=str(org.tenant))
        await change.commit()


@job("entitlement_update")
async def update_entitlements(context: JobContext, org_id: OrgId | None) -> None:
    """Sets the plan of the tenant. If the tenant does not exist yet, it is created with its plan later."""
    if (org := await _on_platform(context, org_id)) is not None:
        await context.platform.set_plan(org.tenant, org.plan_tier)


async def update_limits(context: JobContext) -> None:
    """Queues jobs that send the limits of `PORTAL_SCAN_RATE_LIMITS` to the platform, because they may have changed
    since the last start."""
    if not context.platform.scan_limits:
        return
    async with context.database.service() as session:
        for (org_id,) in (await session.execute(_ON_PLATFORM)).all():
            await queue(session, update_entitlements, org_id)
        await session.commit()


@job("org_update")
async def update_details(context: JobContext, org_id: OrgId | None) -> None:
    """Sets the name and the contact address of the tenant. If the address is removed here, the platform keeps the
    former address."""
    if (org := await _on_platform(context, org_id)) is not None:
        await context.platform.update_tenant(org.tenant, name=org.name, contact_email=org.contact_email)


@job("org_deprovision")
async def deprovision(context: JobContext, org_id: OrgId | None) -> None:
    """Deletes the tenant. Does nothing if the organization was never provisioned, because no platform was
    configured."""
    async with context.database.service() as session:
        org = await _read(session, org_id)
    if org.provisioning_status != "unknown":
        await context.platform.end_tenant(org.tenant)


async def _on_platform(context: JobContext, org_id: OrgId | None) -> _PortalOrganization | None:
    """Returns the organization, or None if the platform has no tenant for it."""
    async with context.database.service() as session:
        org = await _read(session, org_id)
    return org if org.status == "active" and org.provisioning_status == "active" else None


async def _read(session: AsyncSession, org_id: OrgId | None) -> _PortalOrganization:
    return _PortalOrganization(*(await session.execute(_READ, {"id": org_id})).one())
