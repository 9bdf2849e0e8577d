"""DLP events as the drain copies them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final
from uuid import UUID, uuid5

from gatehouse.engine.outcome import Outcome
from gatehouse.platform.records import copying

COLUMNS: Final = (
    "tenant_id, id, timestamp, request_id, user_id, group_ids, rule_id, rule_name, detector_type, entity_type,"
    " direction, status, score, match_count, model, action, severity, source"
)


def event_id(outcome: Outcome[str], number: int) -> str:
    """Follows from the usage record's, so that the same record always gives the same events."""
    return str(uuid5(UUID(outcome.id), str(number)))


def lines(outcome: Outcome[str], moment: datetime) -> Iterator[str]:
    """One an event. `moment` is the outcome's timestamp."""
    groups = copying.json(outcome.group_ids)
    for number, event in enumerate(outcome.dlp_events):
        yield "\t".join((
            outcome.tenant_id,
            event_id(outcome, number),
            moment.isoformat(),
            copying.text(outcome.request_id),
            copying.known(outcome.user_id),
            groups,
            copying.known_text(event.rule_id),
            copying.known_text(event.rule_name),
            copying.known(event.detector_type),
            copying.known_text(event.entity_type),
            event.direction,
            event.status,
            copying.number(event.score),
            repr(event.match_count),
            copying.known_text(_model(outcome)),
            event.action,
            event.severity,
            event.source,
        ))  # fmt: skip


def _model(outcome: Outcome[str]) -> str | None:
    """The model that answered; where none did, what was asked for."""
    if outcome.provider is None or outcome.model_id is None:
        return outcome.requested_model
    return f"{outcome.provider}/{outcome.model_id}"
