"""The rules of suppressions and custom patterns."""

from typing import Any, Final

from sqlalchemy.exc import IntegrityError

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.change import Change
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_customization.errors import (
    PatternNameTaken,
    SuppressedAlready,
    TooManyPatterns,
    UnknownPattern,
)
from gatehouse.platform.governance.dlp_customization.schemas import (
    CustomPatternUpdate,
    NewCustomPattern,
    NewSuppression,
)
from gatehouse.platform.governance.dlp_customization.table import CustomPatternRow, SuppressionRow, count_patterns
from gatehouse.platform.governance.dlp_fields import MOST

_IDS: Final = frozenset(pattern.id for pattern in BUILT_IN)


async def suppress(change: Change, new: NewSuppression) -> SuppressionRow:
    """Raises `UnknownPattern`, `SuppressedAlready`."""
    if new.pattern_id not in _IDS:
        raise UnknownPattern(new.pattern_id)
    row = SuppressionRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        created_by=change.caller.actor_id if change.caller else None,
        created_at=utc_now(),
        **new.model_dump(),
    )
    change.session.add(row)
    await _flushed(change, SuppressedAlready)
    change.record("dlp_suppression.created", "dlp_suppression", row.id, reason=row.reason, pattern_id=row.pattern_id)
    _touch(change)
    return row


async def unsuppress(change: Change, row: SuppressionRow) -> None:
    await change.session.delete(row)
    change.record("dlp_suppression.deleted", "dlp_suppression", row.id, pattern_id=row.pattern_id)
    _touch(change)


async def create(change: Change, new: NewCustomPattern) -> CustomPatternRow:
    """Raises `Unprocessable` for a bad pattern, `PatternNameTaken`, `TooManyPatterns`."""
    await checked_patterns.refuse_bad("pattern", new.pattern)
    await require_room(change.session, ScopedLock.DLP_PATTERNS, count_patterns, limit=MOST, full=TooManyPatterns)
    now = utc_now()
    row = CustomPatternRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **new.model_dump())
    change.session.add(row)
    await _flushed(change, PatternNameTaken)
    change.record("dlp_custom_pattern.created", "dlp_custom_pattern", row.id, **_told(row))
    _touch(change)
    return row


async def update(change: Change, row: CustomPatternRow, body: CustomPatternUpdate) -> CustomPatternRow:
    """Raises as `create` does."""
    sent = body.sent()
    if "pattern" in sent:
        await checked_patterns.refuse_bad("pattern", sent["pattern"])
    for name, value in sent.items():
        setattr(row, name, value)
    row.updated_at = utc_now()
    await _flushed(change, PatternNameTaken)
    change.record("dlp_custom_pattern.updated", "dlp_custom_pattern", row.id, **_told(row), changed=sorted(sent))
    _touch(change)
    return row


async def delete(change: Change, row: CustomPatternRow) -> None:
    await change.session.delete(row)
    change.record("dlp_custom_pattern.deleted", "dlp_custom_pattern", row.id, **_told(row))
    _touch(change)


async def _flushed(change: Change, taken: type[Exception]) -> None:
    try:
        await change.session.flush()
    except IntegrityError:
        raise taken from None


def _touch(change: Change) -> None:
    """The policy is compiled anew. The answer waits for it: what it says is then in force."""
    change.touch("policy", change.tenant_id, urgent=True)


def _told(row: CustomPatternRow) -> dict[str, Any]:
    """Without the pattern, which may spell out what it looks for."""
    return {name: getattr(row, name) for name in ("name", "entity_type", "category", "action_tier", "enabled")}
