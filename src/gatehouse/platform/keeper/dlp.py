"""Rows for the DLP findings in a batch: DLP events, counts for compliance reports, and `dlp_trigger` events
(docs/webhooks.md)."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

import msgspec

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.records.audit_events import DlpEntry, dlp_event_ids
from gatehouse.engine.records.outcome import DlpEvent, Outcome, ToolCalled
from gatehouse.platform.records import arrays
from gatehouse.platform.records.dlp_events import rows as dlp_events

#: Entity types in the counts of requests. Compliance bundles name no others, and a key with all of them fits into an
#: index.
_COUNTED_ENTITY_TYPES: Final = frozenset(TAXONOMY)
#: Maximum length of a name in the counts, because the key of a count must fit into an index.
_MAX_NAME_CHARACTERS: Final = 255
#: The name of the action of a cancelled request in the event. Other actions are named by the action in capitals.
_CANCELLED: Final = "CANCEL"

#: Rank of the actions that affect a request. 0 is the strongest.
_ACTION_RANK: Final = {"block": 0, "prompt": 1, "redact": 2}
_LOG_ONLY: Final = "log_only"
#: Maximum number of findings of each kind in an event.
_MAX_FINDINGS: Final = 50


class FindingCountKey(NamedTuple):
    """The key by which DLP events are counted."""

    tenant_id: str
    day: date
    entity_type: str
    rule_name: str
    action: str
    severity: str


class RequestCountKey(NamedTuple):
    """The key by which requests are counted. `entity_types` is a PostgreSQL array in text form. It is empty for a
    request without findings."""

    tenant_id: str
    day: date
    entity_types: str


class DlpTrigger(NamedTuple):
    """A `dlp_trigger` event for the outbox. `payload` is a JSON object as text."""

    id: str
    tenant_id: str
    payload: str


class DlpRows(msgspec.Struct):
    """Collects the rows of a batch."""

    #: DLP events by month
    events: dict[str, list[arrays.Row]] = {}
    hits: Counter[FindingCountKey] = msgspec.field(default_factory=Counter)
    requests: Counter[RequestCountKey] = msgspec.field(default_factory=Counter)
    triggers: list[DlpTrigger] = []

    def add(self, outcome: Outcome[str], moment: datetime) -> int:
        """Add the findings of a request. `moment` is the timestamp of the outcome. Returns 1 if a rule acted,
        else 0."""
        if not outcome.dlp_events:
            self.requests[RequestCountKey(outcome.tenant_id, moment.date(), "{}")] += 1
            return 0
        acting = self.add_findings(outcome, moment)
        entity_types = sorted({event.entity_type for event in outcome.dlp_events} & _COUNTED_ENTITY_TYPES)
        self.requests[RequestCountKey(outcome.tenant_id, moment.date(), f"{{{','.join(entity_types)}}}")] += 1
        return int(acting)

    def add_findings(self, entry: Outcome[str] | ToolCalled[str], moment: datetime) -> bool:
        """Add the DLP events of a request and their `dlp_trigger`. Returns whether a rule acted. A call of a tool is
        added by this method and not by `add`, because reports of coverage count only model calls."""
        ids = self.add_events(entry, moment)
        rule_events = [event for event in entry.dlp_events if event.rule_id is not None]
        acting = [event for event in rule_events if event.action in _ACTION_RANK]
        logged = [event for event in rule_events if event.action == _LOG_ONLY]
        if acting or logged:
            self.triggers.append(DlpTrigger(ids[0], entry.tenant_id, _payload(entry, acting, logged, moment)))
        return bool(acting)

    def add_events(self, entry: DlpEntry, moment: datetime) -> list[str]:
        """Add DLP events, and return their ids. A scan adds only these events, because it is not a request and does not
        count in the coverage."""
        ids, day = dlp_event_ids(entry), moment.date()
        self.events.setdefault(arrays.month(moment), []).extend(dlp_events.rows(entry, ids, moment))
        for event in entry.dlp_events:
            names = event.entity_type[:_MAX_NAME_CHARACTERS], event.rule_name[:_MAX_NAME_CHARACTERS]
            self.hits[FindingCountKey(entry.tenant_id, day, *names, event.action, event.severity)] += 1
        return ids


def _payload(
    outcome: Outcome[str] | ToolCalled[str], acting: Sequence[DlpEvent], logged: Sequence[DlpEvent], moment: datetime
) -> str:
    """Return the payload of `dlp_trigger`. Its top-level fields describe the strongest finding. `logged` is for
    webhooks with `include_logged`."""
    strongest = min(acting, key=lambda event: _ACTION_RANK[event.action]) if acting else logged[0]
    return msgspec.json.encode(
        {
            "request_id": outcome.request_id,
            "user_id": outcome.user_id,
            **_finding(strongest),
            "timestamp": moment,
            "findings": [_finding(event) for event in acting[:_MAX_FINDINGS]],
            "logged": [_finding(event) for event in logged[:_MAX_FINDINGS]],
        }
    ).decode()


def _finding(event: DlpEvent) -> dict[str, str | None]:
    return {
        "rule_id": event.rule_id,
        "entity_type": event.entity_type,
        "action_taken": _CANCELLED if event.status == "cancelled" else event.action.upper(),
        "direction": event.direction,
    }
