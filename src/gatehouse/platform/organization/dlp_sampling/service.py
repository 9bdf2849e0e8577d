"""The rules of the setting."""

from typing import Any

import msgspec

from gatehouse.platform.change import Change
from gatehouse.platform.organization.dlp_sampling.values import DlpSampling, read
from gatehouse.platform.organization.tenants.stored import store
from gatehouse.platform.organization.tenants.table import TenantRecord


def update(change: Change, tenant: TenantRecord, sent: dict[str, Any]) -> DlpSampling:
    """In force on every worker when the answer comes."""
    before = read(tenant.dlp_sampling)
    after = msgspec.structs.replace(before, **sent)
    if store(change, tenant, "dlp_sampling", before, after):
        change.touch("policy", tenant.id, urgent=True)
    return after
