"""Endpoints of tenants."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends

from gatehouse.platform.access.tenants import service
from gatehouse.platform.access.tenants.schemas import (
    EntitlementsUpdate,
    NewTenant,
    OwnerKey,
    OwnerRegistered,
    Tenant,
    TenantCreated,
    TenantUpdate,
)
from gatehouse.platform.access.tenants.service import TenantNotFound
from gatehouse.platform.organization.tenants.table import TenantRecord, lock_tenant
from gatehouse.platform.request.callers import RESPONSES, PlatformClient
from gatehouse.platform.request.injected import Changing, Session

router = APIRouter(prefix="/v1/platform/tenants", tags=["Tenants"], responses=RESPONSES)


async def _load_tenant(caller: PlatformClient, session: Session, tenant_id: UUID) -> TenantRecord:
    tenant = await lock_tenant(session, tenant_id)
    if tenant is None:
        raise TenantNotFound
    return tenant


LoadedTenant = Annotated[TenantRecord, Depends(_load_tenant)]


@router.post("", status_code=201, response_model=TenantCreated, responses={409: {"description": "Slug or id taken."}})
async def create_tenant(caller: PlatformClient, body: NewTenant, change: Changing) -> TenantCreated:
    """Creates an organization, and with `owner` its first admin. The invitation token is shown only once."""
    return await service.create(change, body)


@router.put(
    "/{tenant_id}/owner",
    response_model=OwnerRegistered,
    responses={
        409: {"description": "The user is not an active administrator, or the key belongs to another organization."}
    },
)
async def register_owner(
    caller: PlatformClient, tenant: LoadedTenant, body: OwnerKey, change: Changing
) -> OwnerRegistered:
    """Adds the key with this hash for the organization's owner. The call is idempotent."""
    return await service.register_owner(change, tenant, body)


@router.patch("/{tenant_id}", response_model=Tenant)
async def update_tenant(caller: PlatformClient, tenant: LoadedTenant, body: TenantUpdate, change: Changing) -> object:
    """Changes an organization's name and contact address."""
    return await service.update(change, tenant, body.sent())


@router.patch("/{tenant_id}/entitlements", response_model=Tenant)
async def change_entitlements(
    caller: PlatformClient, tenant: LoadedTenant, body: EntitlementsUpdate, change: Changing
) -> object:
    """Changes plan and limits. They are active on every worker when the response is sent."""
    return await service.change_entitlements(change, tenant, body.sent())


@router.delete("/{tenant_id}", status_code=204)
async def delete_tenant(caller: PlatformClient, tenant: LoadedTenant, change: Changing) -> None:
    """Deletes an organization. When the response is sent, its users, keys and clients are refused. Its records stay."""
    service.delete(change, tenant)
