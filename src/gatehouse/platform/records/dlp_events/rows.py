"""Converts DLP events of the journal into rows of the database (`platform.records.arrays`)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from gatehouse.engine.records.audit_events import DlpEntry, model_of
from gatehouse.platform.records import arrays

COLUMNS: Final = arrays.Columns(
    "tenant_id uuid, id uuid, timestamp timestamptz, request_id text, user_id uuid, group_ids jsonb,"
    " rule_id text, rule_name text, detector_type text, entity_type text, direction text, status text,"
    " score double precision, match_count integer, model text, action text, severity text, source text"
)


def rows(entry: DlpEntry, ids: Sequence[str], moment: datetime) -> Iterator[arrays.Row]:
    """Yield a row for each event of the entry. `moment` is the timestamp of the entry."""
    tenant_id, at, request_id = arrays.text(entry.tenant_id), moment.isoformat(), arrays.text(entry.request_id)
    user_id, groups, model = arrays.text(entry.user_id), arrays.json(entry.group_ids), arrays.text(model_of(entry))
    for event_id, event in zip(ids, entry.dlp_events, strict=True):
        yield (
            tenant_id,
            arrays.text(event_id),
            at,
            request_id,
            user_id,
            groups,
            arrays.cached_text(event.rule_id),
            arrays.cached_text(event.rule_name),
            arrays.cached_text(event.detector_type),
            arrays.cached_text(event.entity_type),
            arrays.cached_text(event.direction),
            arrays.cached_text(event.status),
            arrays.number(event.score),
            repr(event.match_count),
            model,
            arrays.cached_text(event.action),
            arrays.cached_text(event.severity),
            arrays.cached_text(event.source),
        )
