"""The rules of the IP allowlist."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gatehouse.platform.change import Change
from gatehouse.platform.organization.ip_allowlist.errors import CallerAddressExcluded
from gatehouse.platform.organization.ip_allowlist.values import IpAllowlist, read
from gatehouse.platform.organization.tenants.table import TenantRecord, put
from gatehouse.policy.addresses import AddressRanges, network


def update(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> IpAllowlist:
    """In force on every worker when the answer comes. Raises `CallerAddressExcluded`."""
    before = read(tenant.ip_allowlist)
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in sent.items()}
    after = msgspec.structs.replace(before, **fields)
    changed = {name: value for name, value in fields.items() if getattr(before, name) != value}
    if not changed:
        return after
    # Whoever would pass by a second factor alone is kept in too: factors get lost.
    if after.enabled and (change.ip or "") not in AddressRanges(map(network, after.cidrs)):
        raise CallerAddressExcluded(change.ip or "")
    put(tenant, "ip_allowlist", changed)
    change.record(
        "ip_allowlist.changed",
        "organization",
        tenant.id,
        **changed,
        before={name: getattr(before, name) for name in changed},
    )
    change.touch("policy", tenant.id, urgent=True)
    return after
