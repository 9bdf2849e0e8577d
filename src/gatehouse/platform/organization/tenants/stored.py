"""Stores policies in JSON columns of the tenant's row. A column contains only fields that were set. Other fields have
default values."""

import msgspec

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.tenants.table import TenantRecord


def store_changes(
    change: Change, tenant: TenantRecord, column: str, before: msgspec.Struct, after: msgspec.Struct
) -> bool:
    """Store the fields that differ, and record them with their previous values. Returns whether any field differs."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    changes = {field: value for field, value in new.items() if old[field] != value}
    if changes:
        setattr(tenant, column, {**getattr(tenant, column), **changes})
        tenant.updated_at = utc_now()
        previous = {field: old[field] for field in changes}
        change.record(f"{column}.changed", "organization", tenant.id, **changes, before=previous)
    return bool(changes)
