"""Sets feature flags."""

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import NotFound
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.feature_flags.schemas import Flag
from gatehouse.platform.organization.feature_flags.table import DEFAULTS, with_defaults
from gatehouse.platform.organization.tenants.table import TenantRecord


class FlagNotFound(NotFound):
    message = "There is no feature flag with this name."


def require_flag(name: str) -> str:
    """Return `name` if it is the name of a flag. Raises `FlagNotFound`."""
    if name not in DEFAULTS:
        raise FlagNotFound
    return name


def switch(change: Change, tenant: TenantRecord, name: str, enabled: bool) -> Flag:
    """Set a flag. When the response is sent, the change is active on every worker, because some flags protect the
    organization."""
    previous = with_defaults(tenant.feature_flags)[name]
    if previous is not enabled:
        tenant.feature_flags = {**tenant.feature_flags, name: enabled}
        tenant.updated_at = utc_now()
        change.record("feature_flag.changed", "feature_flag", name, was=previous, enabled=enabled)
        change.touch("policy", change.tenant_id, urgent=True)
    return Flag(flag=name, enabled=enabled, updated_at=tenant.updated_at)
