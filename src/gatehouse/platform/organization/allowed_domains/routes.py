"""The allowed domains' endpoints (reference 2, Organization settings; decisions 2)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from gatehouse.foundation.http.bodies import Id
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.organization.allowed_domains import service
from gatehouse.platform.organization.allowed_domains.errors import DomainNotFound
from gatehouse.platform.organization.allowed_domains.schemas import (
    AllowedDomain,
    AllowedDomains,
    DomainUpdate,
    NewDomain,
)
from gatehouse.platform.organization.allowed_domains.table import all_domains, find
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, InParts, Session

router = APIRouter(prefix="/api/v1/admin/org/allowed-domains", tags=["Organization"], responses=RESPONSES)

DomainName = Annotated[str, Path(max_length=253, pattern=r"^[^\x00]*$", examples=["example.com"])]
Whose = Annotated[Id | None, Query(description="For operators: the organization that they vouch for.")]


@router.get("", response_model=AllowedDomains)
async def list_allowed_domains(caller: AdminReader, tenant: OwnTenant, session: Session) -> AllowedDomains:
    """The organization's mail domains by name, each with the TXT record that proves it."""
    return service.all_shown(await all_domains(session))


@router.post("", status_code=201, response_model=AllowedDomain)
async def add_allowed_domain(
    caller: AdminStepUp, tenant: OwnTenant, body: NewDomain, change: Changing
) -> AllowedDomain:
    """Adds a domain. It counts once it is proven: publish its `txt_record`, then call `verify`."""
    return service.shown(await service.add(change, tenant, body))


@router.patch("/{domain}", response_model=AllowedDomain)
async def update_allowed_domain(
    caller: AdminStepUp, tenant: OwnTenant, domain: DomainName, body: DomainUpdate, change: Changing
) -> AllowedDomain:
    """Changes who may make accounts with the domain's addresses, and in which group. What was proven stays so."""
    return service.shown(await service.update(change, tenant, domain.lower(), body.sent()))


@router.delete("/{domain}", status_code=204)
async def remove_allowed_domain(caller: AdminStepUp, tenant: OwnTenant, domain: DomainName, change: Changing) -> None:
    """Removes a domain. Users stay; their addresses of it count as unverified."""
    await service.remove(change, tenant, domain.lower())


@router.post(
    "/{domain}/verify",
    response_model=AllowedDomain,
    responses={409: {"description": "The TXT record is not there, or another organization has proven the domain."}},
)
async def verify_allowed_domain(
    caller: AdminStepUp, domain: DomainName, parts: InParts, host: TheHost, tenant_id: Whose = None
) -> AllowedDomain:
    """Looks for the domain's TXT record now. An operator's word proves it without."""
    name = domain.lower()
    if caller.operator:
        async with parts.changing() as change, change.inside(TenantId(tenant_id or parts.tenant_id)) as inside:
            return service.shown(await service.prove(inside, name, None))
    async with parts.reading() as session:
        row = await find(session, name)
    if row is None or (tenant_id is not None and tenant_id != parts.tenant_id):
        raise DomainNotFound
    await service.look_up(host.resolver, row)
    async with parts.changing() as change:
        return service.shown(await service.prove(change, name, row.challenge))
