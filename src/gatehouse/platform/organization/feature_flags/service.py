"""The rules of feature flags."""

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.change import Change
from gatehouse.platform.organization.feature_flags.errors import FlagNotFound
from gatehouse.platform.organization.feature_flags.schemas import Flag
from gatehouse.platform.organization.feature_flags.table import DEFAULTS, complete
from gatehouse.platform.organization.tenants.table import TenantRecord


def known(name: str) -> str:
    """The name, if there is such a flag. Raises `FlagNotFound`."""
    if name not in DEFAULTS:
        raise FlagNotFound
    return name


def switch(change: Change, tenant: TenantRecord, name: str, enabled: bool) -> Flag:
    """In force on every worker when the answer comes: some of the flags are what protects an organization."""
    was = complete(tenant.feature_flags)[name]
    if was is not enabled:
        tenant.feature_flags = {**tenant.feature_flags, name: enabled}
        tenant.updated_at = utc_now()
        change.record("feature_flag.changed", "feature_flag", name, was=was, enabled=enabled)
        change.touch("policy", change.tenant_id, urgent=True)
    return Flag(flag=name, enabled=enabled, updated_at=tenant.updated_at)
