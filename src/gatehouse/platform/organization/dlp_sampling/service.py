"""Changes the sampling setting."""

from typing import Any

import msgspec

from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.dlp_sampling import schemas
from gatehouse.platform.organization.dlp_sampling.values import DlpSamplingValues, read
from gatehouse.platform.organization.tenants.sources import sources_of
from gatehouse.platform.organization.tenants.stored import store_changes
from gatehouse.platform.organization.tenants.table import TenantRecord


def to_shown(tenant: TenantRecord) -> schemas.DlpSampling:
    values: dict[str, Any] = msgspec.to_builtins(read(tenant.dlp_sampling))
    return schemas.DlpSampling(**values, sources=sources_of(values, tenant.dlp_sampling))


def update(change: Change, tenant: TenantRecord, changes: dict[str, Any]) -> DlpSamplingValues:
    """Change the setting. When the response is sent, the change is active on every worker."""
    before = read(tenant.dlp_sampling)
    after = msgspec.structs.replace(before, **changes)
    if store_changes(change, tenant, "dlp_sampling", before, after):
        change.touch("policy", tenant.id, urgent=True)
    return after
