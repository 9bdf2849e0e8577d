"""The rules of allowed domains. A change moves the organization's version: the domains are among its settings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy.exc import IntegrityError

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.dns import TxtResolver
from gatehouse.platform.change import Change
from gatehouse.platform.organization.allowed_domains import table
from gatehouse.platform.organization.allowed_domains.errors import (
    DomainNotFound,
    DomainThere,
    NotProven,
    ProvenElsewhere,
    TooManyDomains,
    UnknownGroup,
)
from gatehouse.platform.organization.allowed_domains.schemas import (
    AllowedDomain,
    AllowedDomains,
    NewDomain,
    TxtRecord,
)
from gatehouse.platform.organization.allowed_domains.table import DomainRow
from gatehouse.platform.organization.tenants.table import TenantRecord, living

#: Domains an organization may have.
MOST: Final = 100


def shown(row: DomainRow) -> AllowedDomain:
    return AllowedDomain(
        domain=row.domain,
        jit_provisioning=row.jit_provisioning,
        self_registration=row.self_registration,
        default_group_id=row.default_group_id,
        verified=row.verified_at is not None,
        verified_at=row.verified_at,
        txt_record=TxtRecord(name=row.record_name, value=row.record_value),
        created_at=row.created_at,
    )


def all_shown(rows: Sequence[DomainRow]) -> AllowedDomains:
    groups = {row.default_group_id for row in rows}
    return AllowedDomains(
        domains=[row.domain for row in rows],
        jit_provisioning=any(row.jit_provisioning for row in rows),
        self_registration=any(row.self_registration for row in rows),
        default_group_id=groups.pop() if len(groups) == 1 else None,
        entries=[shown(row) for row in rows],
    )


async def add(change: Change, tenant: TenantRecord, new: NewDomain) -> DomainRow:
    """Raises `DomainThere`, `TooManyDomains`, `UnknownGroup`. The organization's row is locked, so nobody else adds
    meanwhile."""
    there = await table.all_domains(change.session)
    if any(row.domain == new.domain for row in there):
        raise DomainThere
    if len(there) >= MOST:
        raise TooManyDomains
    await _judge_group(change, new.default_group_id)
    now = utc_now()
    row = DomainRow(
        tenant_id=change.tenant_id, verified_at=None, created_at=now, challenge=uuid4().hex, **new.model_dump()
    )
    change.session.add(row)
    tenant.updated_at = now
    change.record("allowed_domain.added", "allowed_domain", row.domain, **new.model_dump(exclude={"domain"}))
    return row


async def update(change: Change, tenant: TenantRecord, domain: str, sent: Mapping[str, Any]) -> DomainRow:
    """Raises `DomainNotFound`, `UnknownGroup`."""
    row = await table.find(change.session, domain, lock=True)
    if row is None:
        raise DomainNotFound
    changed = {name: value for name, value in sent.items() if getattr(row, name) != value}
    if changed:
        await _judge_group(change, changed.get("default_group_id"))
        for name, value in changed.items():
            setattr(row, name, value)
        tenant.updated_at = utc_now()
        change.record("allowed_domain.changed", "allowed_domain", row.domain, **changed)
    return row


async def remove(change: Change, tenant: TenantRecord, domain: str) -> None:
    """Raises `DomainNotFound`."""
    row = await table.find(change.session, domain, lock=True)
    if row is None:
        raise DomainNotFound
    await change.session.delete(row)
    await table.distrust(change.session, row.domain)
    tenant.updated_at = utc_now()
    change.record("allowed_domain.removed", "allowed_domain", row.domain, was_proven=row.verified_at is not None)


async def replace(change: Change, tenant: TenantRecord, domains: Iterable[str]) -> None:
    """These and no others; those that stay keep what they have. Raises `TooManyDomains`."""
    wanted = dict.fromkeys(domains)
    there = {row.domain for row in await table.all_domains(change.session)}
    for domain in sorted(there - wanted.keys()):
        await remove(change, tenant, domain)
    await change.session.flush()
    for domain in wanted.keys() - there:
        await add(change, tenant, NewDomain(domain=domain))
        await change.session.flush()


async def _judge_group(change: Change, group_id: UUID | None) -> None:
    if group_id is not None and not await table.group_exists(change.session, group_id):
        raise UnknownGroup


async def look_up(resolver: TxtResolver, row: DomainRow) -> None:
    """Returns where the domain's TXT record is as it should be. Raises `NotProven`, `DnsUnavailable`."""
    if row.record_value not in await resolver.txt(row.record_name):
        raise NotProven(row.record_name, row.record_value)


async def prove(change: Change, domain: str, challenge: str | None) -> DomainRow:
    """`challenge` is the one that was found in the record, None for an operator's word. Raises `DomainNotFound`,
    `ProvenElsewhere`."""
    tenant = await living(change.session, change.tenant_id)
    row = await table.find(change.session, domain, lock=True)
    # Removed and added again since it was looked up, it asks for another record.
    if tenant is None or row is None or (challenge is not None and row.challenge != challenge):
        raise DomainNotFound
    if row.verified_at is not None:
        return row
    row.verified_at = tenant.updated_at = utc_now()
    try:
        await change.session.flush()
    except IntegrityError:
        raise ProvenElsewhere from None
    by = "operator" if challenge is None else "dns"
    verified = await table.trust(change.session, row.domain)
    change.record("allowed_domain.verified", "allowed_domain", row.domain, by=by, addresses=verified)
    return row
