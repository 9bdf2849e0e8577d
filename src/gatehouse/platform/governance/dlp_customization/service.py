"""Creates, changes and deletes suppressions and custom patterns."""

from typing import Any, Final

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Refusal, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance import checked_patterns
from gatehouse.platform.governance.dlp_customization.schemas import (
    CustomPatternUpdate,
    NewCustomPattern,
    NewSuppression,
)
from gatehouse.platform.governance.dlp_customization.table import CustomPatternRow, SuppressionRow, count_patterns
from gatehouse.platform.governance.dlp_fields import MAX_CUSTOM_PATTERNS

_BUILT_IN_IDS: Final = frozenset(pattern.id for pattern in BUILT_IN)


class SuppressionNotFound(NotFound):
    message = "Suppression not found"


class CustomPatternNotFound(NotFound):
    message = "Custom pattern not found"


class UnknownPattern(Unprocessable):
    def __init__(self, pattern_id: str) -> None:
        message = (
            f"{pattern_id!r} is not a built-in pattern. GET /api/admin/dlp-rules/available-patterns lists their ids."
        )
        super().__init__(faults=[FieldFault("pattern_id", message)])


class SuppressedAlready(Conflict):
    code = "already_suppressed"
    message = "The pattern is suppressed already."


class PatternNameTaken(Conflict):
    code = "pattern_name_taken"
    message = "The organization has a custom pattern of that name."


class TooManyPatterns(Conflict):
    code = "too_many_patterns"
    message = "The organization has the maximum number of custom patterns. Remove some first."


async def suppress(change: Change, new: NewSuppression) -> SuppressionRow:
    """Suppress a built-in pattern. Raises `UnknownPattern`, `SuppressedAlready`."""
    if new.pattern_id not in _BUILT_IN_IDS:
        raise UnknownPattern(new.pattern_id)
    row = SuppressionRow(
        id=new_id(),
        tenant_id=change.tenant_id,
        created_by=change.caller.actor_id if change.caller else None,
        created_at=utc_now(),
        **new.model_dump(),
    )
    change.session.add(row)
    await _flush(change, SuppressedAlready)
    change.record("dlp_suppression.created", "dlp_suppression", row.id, reason=row.reason, pattern_id=row.pattern_id)
    _touch_policy(change)
    return row


async def unsuppress(change: Change, row: SuppressionRow) -> None:
    await change.session.delete(row)
    change.record("dlp_suppression.deleted", "dlp_suppression", row.id, pattern_id=row.pattern_id)
    _touch_policy(change)


async def create(change: Change, new: NewCustomPattern) -> CustomPatternRow:
    """Add a custom pattern. Raises `Unprocessable` if it does not compile, `PatternNameTaken`, `TooManyPatterns`."""
    await checked_patterns.require_valid("pattern", new.pattern)
    await require_room(
        change.session, ScopedLock.DLP_PATTERNS, count_patterns, limit=MAX_CUSTOM_PATTERNS, full=TooManyPatterns
    )
    now = utc_now()
    row = CustomPatternRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **new.model_dump())
    change.session.add(row)
    await _flush(change, PatternNameTaken)
    change.record("dlp_custom_pattern.created", "dlp_custom_pattern", row.id, **_audit_details(row))
    _touch_policy(change)
    return row


async def update(change: Change, row: CustomPatternRow, body: CustomPatternUpdate) -> CustomPatternRow:
    """Change a custom pattern. Raises the same errors as `create`, except `TooManyPatterns`."""
    changes = body.sent()
    if "pattern" in changes:
        await checked_patterns.require_valid("pattern", changes["pattern"])
    row.assign(changes)
    await _flush(change, PatternNameTaken)
    change.record(
        "dlp_custom_pattern.updated", "dlp_custom_pattern", row.id, **_audit_details(row), changed=sorted(changes)
    )
    _touch_policy(change)
    return row


async def delete(change: Change, row: CustomPatternRow) -> None:
    await change.session.delete(row)
    change.record("dlp_custom_pattern.deleted", "dlp_custom_pattern", row.id, **_audit_details(row))
    _touch_policy(change)


async def _flush(change: Change, conflict: type[Refusal]) -> None:
    """Flush the session. Raises `conflict` if a unique constraint is violated."""
    with unique(conflict):
        await change.session.flush()


def _touch_policy(change: Change) -> None:
    """Request a recompilation of the policy. The response waits until the new policy is active."""
    change.touch("policy", change.tenant_id, urgent=True)


def _audit_details(row: CustomPatternRow) -> dict[str, Any]:
    """Return the fields for the audit event. The pattern is left out, because it may contain the text that it
    matches."""
    return {name: getattr(row, name) for name in ("name", "entity_type", "category", "action_tier", "enabled")}
