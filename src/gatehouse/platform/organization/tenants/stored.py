"""Policies that are columns of the tenant's row: they hold what was set, and defaults stand for the rest."""

import msgspec

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.change import Change
from gatehouse.platform.organization.tenants.table import TenantRecord


def store(change: Change, tenant: TenantRecord, column: str, before: msgspec.Struct, after: msgspec.Struct) -> bool:
    """Stores what differs, and says so in the audit chain with what was there before. Whether anything did."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    changed = {field: value for field, value in new.items() if old[field] != value}
    if changed:
        setattr(tenant, column, {**getattr(tenant, column), **changed})
        tenant.updated_at = utc_now()
        was = {field: old[field] for field in changed}
        change.record(f"{column}.changed", "organization", tenant.id, **changed, before=was)
    return bool(changed)
