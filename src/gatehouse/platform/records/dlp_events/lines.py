"""DLP events as the drain copies them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from gatehouse.engine.audited import Found, model_of
from gatehouse.platform.records import copying

COLUMNS: Final = (
    "tenant_id, id, timestamp, request_id, user_id, group_ids, rule_id, rule_name, detector_type, entity_type,"
    " direction, status, score, match_count, model, action, severity, source"
)


def lines(entry: Found, ids: Sequence[str], moment: datetime) -> Iterator[str]:
    """One an event. `moment` is the entry's timestamp."""
    at, request_id, user_id = moment.isoformat(), copying.text(entry.request_id), copying.known(entry.user_id)
    groups, model = copying.json(entry.group_ids), copying.known_text(model_of(entry))
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
