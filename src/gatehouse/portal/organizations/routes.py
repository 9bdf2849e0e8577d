"""The endpoints of organizations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.portal.errors import PortalOrganizationNotFound
from gatehouse.portal.host import TheHost
from gatehouse.portal.organizations import service
from gatehouse.portal.organizations.schemas import (
    NewOrganization,
    Organization,
    OrganizationCreated,
    OrganizationSettings,
    OrganizationUpdate,
    ProvisioningQueued,
)
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.request.callers import (
    RESPONSES,
    AdminKey,
    AdminKeyOfAny,
    OrgAdmin,
    OrgMember,
)
from gatehouse.portal.request.injected import Changing, changing, loaded

router = APIRouter(prefix="/v1/orgs", tags=["Organizations"], responses=RESPONSES)

LoadedOrg = Annotated[
    OrganizationRow, Depends(loaded(OrganizationRow, "org_id", PortalOrganizationNotFound, part="/settings"))
]


@router.post(
    "",
    status_code=201,
    response_model=OrganizationCreated,
    responses={409: {"description": "The slug or the tenant belongs to another organization."}},
)
async def create_organization(
    caller: AdminKey, request: Request, host: TheHost, body: NewOrganization
) -> OrganizationCreated:
    """Creates an organization, and queues the creation of its tenant on the platform. The owner's API key is shown
    once. The key is valid when `provisioning_status` is `active`."""
    await service.check_tenant(host.platform, body)
    async with changing(request, host, TenantId(new_id()), caller) as change:
        return await service.create(change, body)


@router.get("/{org_id}", response_model=Organization)
async def show_organization(caller: OrgMember, org: LoadedOrg) -> object:
    """Returns your organization."""
    return org


@router.patch("/{org_id}", response_model=Organization)
async def update_organization(caller: AdminKey, org: LoadedOrg, body: OrganizationUpdate, change: Changing) -> object:
    """Changes the fields that are sent. A new `plan_tier` applies immediately at the portal, and on the platform when
    it is reachable."""
    return await service.update(change, org, body.sent())


@router.patch("/{org_id}/settings", response_model=Organization)
async def update_settings(caller: OrgAdmin, org: LoadedOrg, body: OrganizationSettings, change: Changing) -> object:
    """Changes your organization's name."""
    return await service.update(change, org, body.sent())


@router.delete(
    "/{org_id}", status_code=204, responses={409: {"description": "The organization has already been cancelled."}}
)
async def cancel_organization(caller: AdminKeyOfAny, org: LoadedOrg, change: Changing) -> None:
    """Cancels an organization permanently. Its tokens are refused after this response, and the deletion of its tenant
    is queued."""
    await service.cancel(change, org)


@router.post(
    "/{org_id}/provision",
    status_code=202,
    response_model=ProvisioningQueued,
    responses={409: {"description": "The organization already exists on the platform."}},
)
async def provision_organization(caller: AdminKey, org: LoadedOrg, change: Changing) -> ProvisioningQueued:
    """Queues the creation of the organization's tenant on the platform again, without a delay."""
    job_id = await service.retry_provisioning(change, org)
    return ProvisioningQueued(org=Organization.model_validate(org), provisioning_job_id=job_id)
