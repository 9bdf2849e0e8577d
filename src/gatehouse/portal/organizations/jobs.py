"""What organizations have to be on the platform (reference 2, Organization; decisions 8)."""

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.portal.change import Change
from gatehouse.portal.identity import OrgId
from gatehouse.portal.jobs import Tools, duty, job, queue
from gatehouse.portal.notifications import table as notifications
from gatehouse.portal.outposts.jobs import push_trust
from gatehouse.portal.platform import NotConfigured, PlatformFailed

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


class _Organization(NamedTuple):
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
        """The platform's tenant has the organization's id, unless another was named."""
        return self.tenant_id or self.id


async def _failed(session: AsyncSession, org_id: OrgId | None, failed: PlatformFailed) -> None:
    status = "unknown" if isinstance(failed, NotConfigured) else "failed"
    await session.execute(_NOT_PROVISIONED, {"id": org_id, "status": status})
    if org_id is not None and status == "failed":
        why = f"The organization could not be made on the platform: {failed}"[:500]
        await notifications.notify(session, org_id, "provisioning_failed", org_id, why)
    change = Change(session, org_id)
    change.record("organization.provisioning_failed", "organization", org_id, reason=str(failed))
    await change.commit()


@job("org_provision", gave_up=_failed)
async def provision(tools: Tools, org_id: OrgId | None) -> None:
    """The tenant is there with the plan, its owner has the first key, and the owner's membership is bound to them."""
    async with tools.database.service() as session:
        org = await _read(session, org_id)
        owner = await session.scalar(_OWNER, {"id": org_id})
    if org.status == "cancelled" or org.provisioning_status == "active":
        return
    if org.tenant_id is None:
        await tools.platform.make_tenant(org.tenant, slug=org.slug, name=org.name, plan=org.plan_tier)
        # An earlier attempt may have made it, under the name of that time.
        await tools.platform.describe(org.tenant, name=org.name, contact_email=org.contact_email)
    else:
        await tools.platform.entitle(org.tenant, org.plan_tier)
    sub = await tools.platform.register_owner(org.tenant, email=owner, key_prefix=org.key_prefix, digest=org.key_digest)
    async with tools.database.service() as session:
        await session.execute(_PROVISIONED, {"id": org_id, "tenant": org.tenant})
        if owner is not None:
            await session.execute(_BIND_OWNER, {"id": org_id, "tenant": org.tenant, "sub": sub})
        await notifications.resolve(session, org.id, "provisioning_failed", org.id)
        # Outposts may have been registered before.
        await queue(session, push_trust, None)
        change = Change(session, org_id)
        change.record("organization.provisioned", "organization", org_id, tenant_id=str(org.tenant))
        await change.commit()


@job("entitlement_update")
async def update_entitlements(tools: Tools, org_id: OrgId | None) -> None:
    """The tenant has the organization's plan. One that is not there yet gets it when it is made."""
    if (org := await _on_platform(tools, org_id)) is not None:
        await tools.platform.entitle(org.tenant, org.plan_tier)


@duty("limits of plans", 6 * 3600.0)
async def _update_limits(tools: Tools) -> None:
    """Tells the platform the limits of `PORTAL_SCAN_RATE_LIMITS`, which may have changed since the last start."""
    if not tools.platform.scan_limits:
        return
    async with tools.database.service() as session:
        for (org_id,) in (await session.execute(_ON_PLATFORM)).all():
            await queue(session, update_entitlements, org_id)
        await session.commit()


@job("org_update")
async def update_details(tools: Tools, org_id: OrgId | None) -> None:
    """The tenant has the organization's name and contact address. An address that is removed here stays there."""
    if (org := await _on_platform(tools, org_id)) is not None:
        await tools.platform.describe(org.tenant, name=org.name, contact_email=org.contact_email)


@job("org_deprovision")
async def deprovision(tools: Tools, org_id: OrgId | None) -> None:
    """The tenant is ended. Where there was no platform to ask for one, there is none."""
    async with tools.database.service() as session:
        org = await _read(session, org_id)
    if org.provisioning_status != "unknown":
        await tools.platform.end_tenant(org.tenant)


async def _on_platform(tools: Tools, org_id: OrgId | None) -> _Organization | None:
    """The organization, while the platform has a tenant for it."""
    async with tools.database.service() as session:
        org = await _read(session, org_id)
    return org if org.status == "active" and org.provisioning_status == "active" else None


async def _read(session: AsyncSession, org_id: OrgId | None) -> _Organization:
    return _Organization(*(await session.execute(_READ, {"id": org_id})).one())
