"""What detection found in a batch's requests: events, the figures that compliance reads, and `dlp_trigger` for whoever
listens (reference 3, Events)."""

from collections import Counter
from datetime import date, datetime
from typing import Final, NamedTuple

import msgspec

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.outcome import DlpEvent, Outcome
from gatehouse.platform.records import copying
from gatehouse.platform.records.dlp_events import lines as dlp_events

#: Only these enter the counts of requests: bundles name no other, and a key of all of them fits an index.
_COUNTED: Final = frozenset(TAXONOMY)
#: What an action is called in the event, where that is not its own name in capitals.
_CANCELLED: Final = "CANCEL"


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
    #: events as lines by month
    events: dict[str, list[str]] = {}
    hits: Counter[Hits] = msgspec.field(default_factory=Counter)
    requests: Counter[Requests] = msgspec.field(default_factory=Counter)
    triggers: list[Trigger] = []

    def add(self, outcome: Outcome[str], moment: datetime) -> None:
        """`moment` is the outcome's timestamp."""
        tenant_id, day = outcome.tenant_id, moment.date()
        if not outcome.dlp_events:
            self.requests[Requests(tenant_id, day, "{}")] += 1
            return
        into = self.events.setdefault(copying.month(moment), [])
        into += dlp_events.lines(outcome, moment)
        for number, event in enumerate(outcome.dlp_events):
            self.hits[
                Hits(tenant_id, day, event.entity_type[:100], event.rule_name[:255], event.action, event.severity)
            ] += 1
            if event.rule_id is not None and event.action != "allow":
                event_id = dlp_events.event_id(outcome, number)
                self.triggers.append(Trigger(event_id, tenant_id, _payload(outcome, event, moment)))
        found = sorted({event.entity_type for event in outcome.dlp_events} & _COUNTED)
        self.requests[Requests(tenant_id, day, f"{{{','.join(found)}}}")] += 1


def _payload(outcome: Outcome[str], event: DlpEvent, moment: datetime) -> str:
    return msgspec.json.encode(
        {
            "request_id": outcome.request_id,
            "user_id": outcome.user_id,
            "rule_id": event.rule_id,
            "entity_type": event.entity_type,
            "action_taken": _CANCELLED if event.status == "cancelled" else event.action.upper(),
            "timestamp": moment,
        }
    ).decode()
