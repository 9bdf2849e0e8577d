"""What detection found in a batch's requests: events, the figures that compliance reads, and `dlp_trigger` for whoever
listens (reference 3, Events)."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

import msgspec

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.audited import Found, dlp_event_ids
from gatehouse.engine.outcome import DlpEvent, Outcome
from gatehouse.platform.records import arrays
from gatehouse.platform.records.dlp_events import rows as dlp_events

#: Only these enter the counts of requests: bundles name no other, and a key of all of them fits an index.
_COUNTED: Final = frozenset(TAXONOMY)
#: In the counts, whose key has to fit an index.
_LONGEST_NAME: Final = 255
#: What an action is called in the event, where that is not its own name in capitals.
_CANCELLED: Final = "CANCEL"

#: The order of the actions that do something to a request, the strongest first.
_STRENGTH: Final = {"block": 0, "prompt": 1, "redact": 2}
_LOGGED: Final = "log_only"
#: Findings of each kind that a request's event names.
_MOST_FINDINGS: Final = 50


class Hits(NamedTuple):
    """What events are counted by."""

    tenant_id: str
    day: date
    entity_type: str
    rule_name: str
    action: str
    severity: str


class Requests(NamedTuple):
    """What requests are counted by. `entity_types` is written as PostgreSQL writes an array; of a request in which
    nothing was found it is empty."""

    tenant_id: str
    day: date
    entity_types: str


class Trigger(NamedTuple):
    id: str
    tenant_id: str
    payload: str


class DlpRows(msgspec.Struct):
    #: events by month
    events: dict[str, list[arrays.Row]] = {}
    hits: Counter[Hits] = msgspec.field(default_factory=Counter)
    requests: Counter[Requests] = msgspec.field(default_factory=Counter)
    triggers: list[Trigger] = []

    def add(self, outcome: Outcome[str], moment: datetime) -> int:
        """`moment` is the outcome's timestamp. The answer is 1 where a rule did something, else 0."""
        if not outcome.dlp_events:
            self.requests[Requests(outcome.tenant_id, moment.date(), "{}")] += 1
            return 0
        ids = self.add_events(outcome, moment)
        by_rules = [event for event in outcome.dlp_events if event.rule_id is not None]
        acting = [event for event in by_rules if event.action in _STRENGTH]
        logged = [event for event in by_rules if event.action == _LOGGED]
        if acting or logged:
            self.triggers.append(Trigger(ids[0], outcome.tenant_id, _payload(outcome, acting, logged, moment)))
        found = sorted({event.entity_type for event in outcome.dlp_events} & _COUNTED)
        self.requests[Requests(outcome.tenant_id, moment.date(), f"{{{','.join(found)}}}")] += 1
        return int(bool(acting))

    def add_events(self, entry: Found, moment: datetime) -> list[str]:
        """All that there is of a scan: it is part of no conversation, and no request that coverage could be of. The
        answer is the events' ids."""
        ids, day = dlp_event_ids(entry), moment.date()
        self.events.setdefault(arrays.month(moment), []).extend(dlp_events.rows(entry, ids, moment))
        for event in entry.dlp_events:
            names = event.entity_type[:_LONGEST_NAME], event.rule_name[:_LONGEST_NAME]
            self.hits[Hits(entry.tenant_id, day, *names, event.action, event.severity)] += 1
        return ids


def _payload(outcome: Outcome[str], acting: Sequence[DlpEvent], logged: Sequence[DlpEvent], moment: datetime) -> str:
    """The strongest finding is the event's own. `logged` is for webhooks with `include_logged`."""
    foremost = min(acting, key=lambda event: _STRENGTH[event.action]) if acting else logged[0]
    return msgspec.json.encode(
        {
            "request_id": outcome.request_id,
            "user_id": outcome.user_id,
            **_finding(foremost),
            "timestamp": moment,
            "findings": [_finding(event) for event in acting[:_MOST_FINDINGS]],
            "logged": [_finding(event) for event in logged[:_MOST_FINDINGS]],
        }
    ).decode()


def _finding(event: DlpEvent) -> dict[str, str | None]:
    return {
        "rule_id": event.rule_id,
        "entity_type": event.entity_type,
        "action_taken": _CANCELLED if event.status == "cancelled" else event.action.upper(),
        "direction": event.direction,
    }
