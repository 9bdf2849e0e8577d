"""Endpoints of allowed domains."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from gatehouse.foundation.http.bodies import Id
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.organization.allowed_domains import service
from gatehouse.platform.organization.allowed_domains.schemas import (
    AllowedDomain,
    AllowedDomains,
    DomainUpdate,
    NewDomain,
)
from gatehouse.platform.organization.allowed_domains.service import DomainNotFound
from gatehouse.platform.organization.allowed_domains.table import all_domains, find
from gatehouse.platform.organization.tenants.own import OwnTenant
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/v1/admin/org/allowed-domains", tags=["Organization"], responses=RESPONSES)

DomainName = Annotated[str, Path(max_length=253, pattern=r"^[^\x00]*$", examples=["example.com"])]
TargetTenant = Annotated[Id | None, Query(description="For operators: the organization whose domain is verified.")]


@router.get("", response_model=AllowedDomains)
async def list_allowed_domains(caller: AdminReader, tenant: OwnTenant, session: Session) -> AllowedDomains:
    """Lists the organization's mail domains by name, with the TXT records that verify them. An organization has at most
    100 domains."""
    return service.to_list(await all_domains(session))


@router.post("", status_code=201, response_model=AllowedDomain)
async def add_allowed_domain(
    caller: AdminStepUp, tenant: OwnTenant, body: NewDomain, change: Changing
) -> AllowedDomain:
    """Adds a domain. To verify it, publish its `txt_record` and then call `verify`."""
    return service.to_shown(await service.add(change, tenant, body))


@router.patch("/{domain}", response_model=AllowedDomain)
async def update_allowed_domain(
    caller: AdminStepUp, tenant: OwnTenant, domain: DomainName, body: DomainUpdate, change: Changing
) -> AllowedDomain:
    """Changes which users can create accounts with addresses of the domain, and the group of new accounts. A verified
    domain stays verified."""
    return service.to_shown(await service.update(change, tenant, domain.lower(), body.sent()))


@router.delete("/{domain}", status_code=204)
async def remove_allowed_domain(caller: AdminStepUp, tenant: OwnTenant, domain: DomainName, change: Changing) -> None:
    """Removes a domain. Users are kept, and their addresses of this domain become unverified."""
    await service.remove(change, tenant, domain.lower())


@router.post(
    "/{domain}/verify",
    response_model=AllowedDomain,
    responses={409: {"description": "The TXT record does not exist, or another organization has verified the domain."}},
)
async def verify_allowed_domain(
    caller: AdminStepUp,
    domain: DomainName,
    transactions: InSplitTransactions,
    host: TheHost,
    tenant_id: TargetTenant = None,
) -> AllowedDomain:
    """Checks the TXT record of the domain, and marks the domain as verified. An operator can verify a domain without
    the record."""
    name = domain.lower()
    if caller.operator:
        async with (
            transactions.changing() as change,
            change.inside(TenantId(tenant_id or transactions.tenant_id)) as inside,
        ):
            return service.to_shown(await service.verify(inside, name, None))
    async with transactions.reading() as session:
        row = await find(session, name)
    if row is None or (tenant_id is not None and tenant_id != transactions.tenant_id):
        raise DomainNotFound
    await service.check_txt_record(host.resolver, row)
    async with transactions.changing() as change:
        return service.to_shown(await service.verify(change, name, row.challenge))
