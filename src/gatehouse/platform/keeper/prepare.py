"""Converts a batch into rows to insert, audit events to append, and counts to add. Uses neither the database
nor locks."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine.records import audit_events
from gatehouse.engine.records.outcome import (
    JournalEntry,
    Opened,
    Outcome,
    Sampled,
    Scanned,
    ToolCalled,
    decode_of_platform,
)
from gatehouse.foundation.journal import Batch
from gatehouse.platform.changes.chain.links import AuditEvent, personal_digest
from gatehouse.platform.keeper.dlp import DlpRows
from gatehouse.platform.keeper.rollups.aliases import AliasRows
from gatehouse.platform.keeper.rollups.days import DayRows
from gatehouse.platform.keeper.rollups.minutes import MinuteRows
from gatehouse.platform.keeper.rollups.models import ModelRows
from gatehouse.platform.keeper.rollups.spent import SpentRows
from gatehouse.platform.keeper.samples import StoredSample, sample_row
from gatehouse.platform.records import arrays
from gatehouse.platform.records.usage import rows as usage
from gatehouse.platform.records.usage.counts import UsageCountKey

log = structlog.get_logger(__name__)

#: Highest plausible values. A provider may report impossible numbers. Larger numbers of tokens are dropped, so that the
#: record can still be stored.
_MAX_TOKENS: Final = 2**53
_MAX_USD: Final = Decimal(10**15)


class DecodedEntry(NamedTuple):
    """A decoded journal entry, with its original line and its writer."""

    writer_id: UUID
    payload: bytes
    entry: JournalEntry[str]


class Prepared(msgspec.Struct):
    """All data that one transaction stores."""

    #: rows of usage records, by month
    usage: dict[str, list[arrays.Row]] = {}
    #: audit events with the digests of their personal data, by month and tenant
    events: dict[str, dict[str, list[tuple[AuditEvent, bytes]]]] = {}
    counts: Counter[UsageCountKey] = msgspec.field(default_factory=Counter)
    dlp: DlpRows = msgspec.field(default_factory=DlpRows)
    spent: SpentRows = msgspec.field(default_factory=SpentRows)
    minutes: MinuteRows = msgspec.field(default_factory=MinuteRows)
    days: DayRows = msgspec.field(default_factory=DayRows)
    aliases: AliasRows = msgspec.field(default_factory=AliasRows)
    samples: list[StoredSample] = []
    models: ModelRows = msgspec.field(default_factory=ModelRows)
    #: streams that began and have not ended: pairs of writer and entry, by the id of the stream
    opened: dict[str, tuple[UUID, bytes]] = {}
    #: ids of streams that ended in this batch and began in an earlier one
    ended: list[str] = []
    #: ids of streams of dead writers that began in an earlier batch
    interrupted: list[str] = []
    #: Unix time of the last use of each API key, by the id of the key
    used_keys: dict[str, float] = {}
    rows: int = 0
    #: Unix time at which the first of the requests in this batch ended
    first_ended: float = math.inf

    def add_audit_event(self, tenant_id: str, event: AuditEvent) -> None:
        """Add an audit event to the organization's events of this batch."""
        by_tenant = self.events.setdefault(arrays.month(event.timestamp), {})
        by_tenant.setdefault(tenant_id, []).append((event, personal_digest(event)))


def decode_batch(batch: Batch) -> tuple[list[DecodedEntry], list[bytes]]:
    """Return the decoded entries of the batch, and the lines that are not valid entries."""
    entries, rejected = [], []
    for line in batch.entries:
        try:
            entries.append(DecodedEntry(line.writer_id, line.payload, _clean(decode_of_platform(line.payload))))
        except (msgspec.MsgspecError, ValueError, ArithmeticError, OSError):
            rejected.append(line.payload)
    return entries, rejected


def _clean(entry: JournalEntry[str]) -> JournalEntry[str]:
    """Return the entry without the values that PostgreSQL cannot store. Raises `ValueError`, `ArithmeticError` or
    `OSError` if the entry cannot be stored at all."""
    datetime.fromtimestamp(entry.timestamp, UTC)
    if (entry.requested_model and "\0" in entry.requested_model) or "\0" in entry.request_id or "\0" in entry.ip:
        cleaned = {
            name: value.replace("\0", "\N{REPLACEMENT CHARACTER}")
            for name in ("requested_model", "request_id", "ip")
            if (value := getattr(entry, name)) is not None
        }
        entry = msgspec.structs.replace(entry, **cleaned)
    if isinstance(entry, Outcome):
        tokens = (entry.input_tokens or 0, entry.output_tokens or 0, entry.cached_tokens or 0)
        if min(tokens) < 0 or max(tokens) > _MAX_TOKENS:
            log.error("drain.impossible_tokens", usage_record_id=entry.id, tokens=tokens)
            entry = msgspec.structs.replace(entry, input_tokens=None, output_tokens=None, cached_tokens=None)
        # Costs are added up, so NaN or infinity would make the sums useless.
        if entry.cost_usd is not None and not 0 <= Decimal(entry.cost_usd) <= _MAX_USD:
            raise ValueError("the cost is not a valid amount of money")
    return entry


def prepare(
    entries: Iterable[DecodedEntry],
    finished: Iterable[UUID],
    left_open: Mapping[str, bytes],
    *,
    outpost_id: UUID | None = None,
) -> Prepared:
    """Convert entries into rows. The writers in `finished` are dead, so their open streams are recorded as interrupted,
    both those in this batch and those in earlier batches (`left_open`). `outpost_id` is the outpost that served the
    requests, or None for this platform."""
    prepared = Prepared()
    dead = frozenset(finished)
    for writer_id, payload, entry in entries:
        if isinstance(entry, Opened):
            prepared.opened[entry.id] = (writer_id, payload)
        elif isinstance(entry, Outcome):
            _add(prepared, entry, latency=entry.latency_ms, outpost_id=outpost_id)
            prepared.spent.add(entry, writer_id)
            if entry.stream and prepared.opened.pop(entry.id, None) is None:
                prepared.ended.append(entry.id)
        elif isinstance(entry, ToolCalled):
            _add_tool_call(prepared, entry, outpost_id)
            prepared.spent.add_tool_call(entry, writer_id)
        else:
            _add_other(prepared, entry)
    for stream, (writer_id, payload) in list(prepared.opened.items()):
        if writer_id in dead:
            del prepared.opened[stream]
            _add(prepared, _interrupted(payload), latency=None, outpost_id=outpost_id)
    ended = set(prepared.ended)
    for stream, payload in left_open.items():
        if stream not in ended:
            prepared.interrupted.append(stream)
            _add(prepared, _interrupted(payload), latency=None, outpost_id=outpost_id)
    return prepared


def _add_other(prepared: Prepared, entry: Scanned[str] | Sampled[str]) -> None:
    """Add an entry that is neither a model call nor a call of a tool."""
    match entry:
        case Scanned():
            prepared.dlp.add_events(entry, datetime.fromtimestamp(entry.timestamp, UTC))
        case Sampled():
            prepared.samples.append(sample_row(entry))


def _interrupted(payload: bytes) -> Outcome[str]:
    opened = _clean(decode_of_platform(payload))
    assert isinstance(opened, Opened)
    return audit_events.interrupted(opened)


def _add(prepared: Prepared, outcome: Outcome[str], *, latency: float | None, outpost_id: UUID | None = None) -> None:
    moment = datetime.fromtimestamp(outcome.timestamp, UTC)
    tenant_id = outcome.tenant_id
    month = arrays.month(moment)
    prepared.usage.setdefault(month, []).append(usage.row(outcome, moment, latency))
    event = _event(outcome, moment, outpost_id)
    prepared.events.setdefault(month, {}).setdefault(tenant_id, []).append((event, personal_digest(event)))
    day = moment.date()
    prepared.counts[
        UsageCountKey(tenant_id, day, outcome.user_id, outcome.group_id, outcome.provider, outcome.model_id)
    ] += 1
    triggers = prepared.dlp.add(outcome, moment)
    prepared.minutes.add(outcome, latency, triggers)
    prepared.days.add(outcome, day)
    prepared.aliases.add(outcome, latency, triggers)
    prepared.models.add(outcome, moment)
    prepared.rows += 1
    prepared.first_ended = min(prepared.first_ended, outcome.timestamp + outcome.latency_ms / 1000)
    _note_use(prepared, outcome)


def _note_use(prepared: Prepared, entry: Outcome[str] | ToolCalled[str]) -> None:
    if entry.api_key_id is not None:
        last = prepared.used_keys.get(entry.api_key_id, 0.0)
        prepared.used_keys[entry.api_key_id] = max(last, entry.timestamp)


def _add_tool_call(prepared: Prepared, call: ToolCalled[str], outpost_id: UUID | None) -> None:
    """Add the audit event of a call of a tool, and its DLP events."""
    moment = datetime.fromtimestamp(call.timestamp, UTC)
    event = AuditEvent(
        id=call.id,
        timestamp=moment,
        actor_id=call.user_id or call.client_id,
        actor_type=call.actor_type,
        action=audit_events.TOOL_CALL,
        outcome=call.outcome,
        resource_type=audit_events.MCP_SERVER,
        resource_id=call.server_id,
        request_id=call.request_id,
        ip=call.ip,
        reason=call.error_code,
        salt=os.urandom(16),
        details=audit_events.tool_call_details(call, outpost_id),
    )
    prepared.add_audit_event(call.tenant_id, event)
    if call.dlp_events:
        prepared.dlp.add_findings(call, moment)
    _note_use(prepared, call)


def _event(outcome: Outcome[str], moment: datetime, outpost_id: UUID | None) -> AuditEvent:
    """Return the audit event of a request. The event has the id of the request's usage record."""
    return AuditEvent(
        id=outcome.id,
        timestamp=moment,
        actor_id=outcome.user_id or outcome.client_id,
        actor_type=outcome.actor_type,
        action=audit_events.ACTION,
        outcome=outcome.outcome,
        request_id=outcome.request_id,
        ip=outcome.ip,
        target_provider=outcome.provider,
        target_model=outcome.model_id,
        reason=outcome.error_code,
        salt=os.urandom(16),
        details=audit_events.details(outcome, outpost_id),
    )
