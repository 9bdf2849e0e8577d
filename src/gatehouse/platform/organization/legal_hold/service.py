"""Sets and releases the legal hold. The hold has the same version as the organization's other settings."""

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import NotFound
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.legal_hold.schemas import LegalHold
from gatehouse.platform.organization.legal_hold.table import LegalHoldRow, legal_hold, lock_removals
from gatehouse.platform.organization.tenants.table import TenantRecord


class NoLegalHold(NotFound):
    code = "no_legal_hold"
    message = "No legal hold is set."


def to_shown(hold: LegalHoldRow | None) -> LegalHold:
    if hold is None:
        return LegalHold(active=False)
    return LegalHold(active=True, reason=hold.reason, set_by=hold.set_by, set_at=hold.set_at)


async def put(change: Change, tenant: TenantRecord, reason: str) -> LegalHold:
    """Set the legal hold, or change its reason."""
    await lock_removals(change.session)
    hold = await legal_hold(change.session)
    if hold is not None and hold.reason == reason:
        return to_shown(hold)
    before = None if hold is None else hold.reason
    if hold is None:
        assert change.caller is not None
        hold = LegalHoldRow(tenant_id=change.tenant_id, reason=reason, set_by=change.caller.actor_id, set_at=utc_now())
        change.session.add(hold)
    else:
        hold.reason = reason
    tenant.updated_at = utc_now()
    change.record("legal_hold.set", "organization", change.tenant_id, hold=reason, before=before)
    return to_shown(hold)


async def release(change: Change, tenant: TenantRecord) -> None:
    """Release the legal hold. Raises `NoLegalHold`."""
    await lock_removals(change.session)
    hold = await legal_hold(change.session)
    if hold is None:
        raise NoLegalHold
    await change.session.delete(hold)
    tenant.updated_at = utc_now()
    change.record("legal_hold.released", "organization", change.tenant_id, hold=hold.reason, set_at=hold.set_at)
