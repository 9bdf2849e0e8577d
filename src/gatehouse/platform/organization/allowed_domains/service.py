"""Adds, changes, removes and verifies allowed domains. The organization's settings include the domains, and
`updated_at` of the organization is the version of the settings. So each change of a domain sets it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress.dns import TxtResolver
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.allowed_domains import table
from gatehouse.platform.organization.allowed_domains.schemas import (
    AllowedDomain,
    AllowedDomains,
    NewDomain,
    TxtRecord,
)
from gatehouse.platform.organization.allowed_domains.table import DomainRow
from gatehouse.platform.organization.tenants.table import TenantRecord, lock_tenant

#: Maximum number of domains of an organization.
MAX_DOMAINS: Final = 100


class DomainNotFound(NotFound):
    message = "The organization has no such domain."


class DomainExists(Conflict):
    code = "domain_exists"
    message = "domain: the organization already has this domain."


class TooManyDomains(Conflict):
    code = "too_many_domains"
    message = "An organization can have at most 100 domains."


class DomainNotProven(Conflict):
    code = "domain_not_proven"

    def __init__(self, name: str, value: str) -> None:
        super().__init__(f"There is no TXT record {name} with the value {value}.")


class DomainProvenElsewhere(Conflict):
    code = "domain_proven_elsewhere"
    message = "Another organization has verified this domain."


class UnknownGroup(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("default_group_id", "The organization has no such group.")])


def to_shown(row: DomainRow) -> AllowedDomain:
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


def to_list(rows: Sequence[DomainRow]) -> AllowedDomains:
    groups = {row.default_group_id for row in rows}
    return AllowedDomains(
        domains=[row.domain for row in rows],
        jit_provisioning=any(row.jit_provisioning for row in rows),
        self_registration=any(row.self_registration for row in rows),
        default_group_id=groups.pop() if len(groups) == 1 else None,
        entries=[to_shown(row) for row in rows],
    )


async def add(change: Change, tenant: TenantRecord, new: NewDomain) -> DomainRow:
    """Add a domain. The caller must have locked the organization's row, so that the limit also holds for concurrent
    requests. Raises `DomainExists`, `TooManyDomains` and `UnknownGroup`."""
    existing = await table.all_domains(change.session)
    if any(row.domain == new.domain for row in existing):
        raise DomainExists
    if len(existing) >= MAX_DOMAINS:
        raise TooManyDomains
    await _require_group(change, new.default_group_id)
    now = utc_now()
    row = DomainRow(
        tenant_id=change.tenant_id, verified_at=None, created_at=now, challenge=uuid4().hex, **new.model_dump()
    )
    change.session.add(row)
    tenant.updated_at = now
    change.record("allowed_domain.added", "allowed_domain", row.domain, **new.model_dump(exclude={"domain"}))
    return row


async def update(change: Change, tenant: TenantRecord, domain: str, values: Mapping[str, Any]) -> DomainRow:
    """Change a domain. Raises `DomainNotFound` and `UnknownGroup`."""
    row = await table.find(change.session, domain, lock=True)
    if row is None:
        raise DomainNotFound
    changes = row.differing(values)
    if changes:
        await _require_group(change, changes.get("default_group_id"))
        for name, value in changes.items():
            setattr(row, name, value)
        tenant.updated_at = utc_now()
        change.record("allowed_domain.changed", "allowed_domain", row.domain, **changes)
    return row


async def remove(change: Change, tenant: TenantRecord, domain: str) -> None:
    """Remove a domain, and mark its addresses as unverified. Raises `DomainNotFound`."""
    row = await table.find(change.session, domain, lock=True)
    if row is None:
        raise DomainNotFound
    await change.session.delete(row)
    await table.unverify_addresses(change.session, row.domain)
    tenant.updated_at = utc_now()
    change.record("allowed_domain.removed", "allowed_domain", row.domain, was_proven=row.verified_at is not None)


async def replace(change: Change, tenant: TenantRecord, domains: Iterable[str]) -> None:
    """Replace the list of domains. Domains in both lists keep their settings. Raises `TooManyDomains`."""
    new_domains = dict.fromkeys(domains)
    existing = {row.domain for row in await table.all_domains(change.session)}
    for domain in sorted(existing - new_domains.keys()):
        await remove(change, tenant, domain)
    await change.session.flush()
    for domain in new_domains.keys() - existing:
        await add(change, tenant, NewDomain(domain=domain))
        await change.session.flush()


async def _require_group(change: Change, group_id: UUID | None) -> None:
    if group_id is not None and not await table.group_exists(change.session, group_id):
        raise UnknownGroup


async def check_txt_record(resolver: TxtResolver, row: DomainRow) -> None:
    """Check the TXT record of a domain. Raises `DomainNotProven` if the record does not have the expected value.
    Raises `DnsUnavailable` if DNS does not answer."""
    if row.record_value not in await resolver.txt(row.record_name):
        raise DomainNotProven(row.record_name, row.record_value)


async def verify(change: Change, domain: str, challenge: str | None) -> DomainRow:
    """Mark a domain as verified. `challenge` is the value from the TXT record, or None if an operator verifies the
    domain. Idempotent. Raises `DomainNotFound` and `DomainProvenElsewhere`."""
    tenant = await lock_tenant(change.session, change.tenant_id)
    row = await table.find(change.session, domain, lock=True)
    # If the domain was removed and added again since the look-up, its challenge differs.
    if tenant is None or row is None or (challenge is not None and row.challenge != challenge):
        raise DomainNotFound
    if row.verified_at is not None:
        return row
    row.verified_at = tenant.updated_at = utc_now()
    with unique(DomainProvenElsewhere):
        await change.session.flush()
    method = "operator" if challenge is None else "dns"
    verified = await table.verify_addresses(change.session, row.domain)
    change.record("allowed_domain.verified", "allowed_domain", row.domain, by=method, addresses=verified)
    return row
