"""Changes the IP allowlist."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.errors import BadRequest
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.ip_allowlist import schemas
from gatehouse.platform.organization.ip_allowlist.values import IpAllowlistValues, read
from gatehouse.platform.organization.tenants.sources import sources_of
from gatehouse.platform.organization.tenants.stored import store_changes
from gatehouse.platform.organization.tenants.table import TenantRecord
from gatehouse.policy.addresses import AddressRanges


class CallerAddressExcluded(BadRequest):
    """The new list would lock out the caller: 400 (docs/ip-allowlist.md)."""

    def __init__(self, address: str) -> None:
        message = f"Your own address {address} is not in the new list, so you would lock yourself out."
        super().__init__(message, code="caller_address_excluded")


def to_shown(tenant: TenantRecord) -> schemas.IpAllowlist:
    values: dict[str, Any] = msgspec.to_builtins(read(tenant.ip_allowlist))
    return schemas.IpAllowlist(**values, sources=sources_of(values, tenant.ip_allowlist))


def update(change: Change, tenant: TenantRecord, changes: Mapping[str, Any]) -> IpAllowlistValues:
    """Change the allowlist. When the response is sent, the change is active on every worker. Raises
    `CallerAddressExcluded`."""
    before = read(tenant.ip_allowlist)
    after = read({**msgspec.to_builtins(before), **changes})
    # The address is also checked for callers who could bypass the list with a second factor, because a factor can be
    # lost.
    if after != before and after.enabled and (change.origin.ip or "") not in AddressRanges(map(network, after.cidrs)):
        raise CallerAddressExcluded(change.origin.ip or "")
    if store_changes(change, tenant, "ip_allowlist", before, after):
        change.touch("policy", tenant.id, urgent=True)
    return after
