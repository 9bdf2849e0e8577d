"""The rules of the retention policy."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gatehouse.platform.change import Change
from gatehouse.platform.organization.retention_policy.values import RetentionPolicy, read
from gatehouse.platform.organization.tenants.table import TenantRecord, put


def update(change: Change, tenant: TenantRecord, sent: Mapping[str, Any]) -> RetentionPolicy:
    before = read(tenant.retention_policy)
    changed = {name: value for name, value in sent.items() if getattr(before, name) != value}
    if changed:
        put(tenant, "retention_policy", changed)
        change.record(
            "retention_policy.changed",
            "organization",
            tenant.id,
            **changed,
            before={name: getattr(before, name) for name in changed},
        )
    return msgspec.structs.replace(before, **changed)
