"""DLP events as the drain copies them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID, uuid5

from gatehouse.engine.outcome import Outcome, Scanned
from gatehouse.platform.records import copying

#: What events come with: a request, or a scan.
Found: TypeAlias = Outcome[str] | Scanned[str]

COLUMNS: Final = (
    "tenant_id, id, timestamp, request_id, user_id, group_ids, rule_id, rule_name, detector_type, entity_type,"
    " direction, status, score, match_count, model, action, severity, source"
)


def ids(entry: Found) -> list[str]:
    """They follow from the entry's, so that the same entry always gives the same events."""
    namespace = UUID(entry.id)
    return [str(uuid5(namespace, str(number))) for number in range(len(entry.dlp_events))]


def lines(entry: Found, ids: Sequence[str], moment: datetime) -> Iterator[str]:
    """One an event. `moment` is the entry's timestamp."""
    at, request_id, user_id = moment.isoformat(), copying.text(entry.request_id), copying.known(entry.user_id)
    groups, model = copying.json(entry.group_ids), copying.known_text(_model(entry))
    for event_id, event in zip(ids, entry.dlp_events, strict=True):
        yield "\t".join((
            entry.tenant_id,
            event_id,
            at,
            request_id,
            user_id,
            groups,
            copying.known_text(event.rule_id),
            copying.known_text(event.rule_name),
            copying.known(event.detector_type),
            copying.known_text(event.entity_type),
            event.direction,
            event.status,
            copying.number(event.score),
            repr(event.match_count),
            model,
            event.action,
            event.severity,
            event.source,
        ))  # fmt: skip


def _model(entry: Found) -> str | None:
    """The model that answered; where none did, what was asked for."""
    if entry.provider is None or entry.model_id is None:
        return entry.requested_model
    return f"{entry.provider}/{entry.model_id}"
