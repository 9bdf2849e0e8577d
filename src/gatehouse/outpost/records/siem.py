"""Sends the outpost's events directly to a SIEM (`SIEM_DIRECT_*`; docs/siem.md lists the fields). This also works while
the platform is unreachable, and for organizations that must not send records to the platform.

Each entry of the journal is converted to the same events that the platform would forward, with the same ids. Each event
is delivered at least once, and in order. Events that the receiver has not accepted stay in the journal, even after
their records have been uploaded to the platform.
"""

import asyncio
import ssl
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine.records import audit_events, upload_notices
from gatehouse.engine.records.audit_events import DlpEntry
from gatehouse.engine.records.outcome import (
    DlpEvent,
    Opened,
    Outcome,
    ToolCalled,
    decode_with_text_ids,
)
from gatehouse.engine.records.upload_notices import Operated
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.identity import CallerKind
from gatehouse.foundation.journal import Batch, Position
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.settings import BadSettings
from gatehouse.foundation.siem import events
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.sender import BatchRefused, SiemTarget
from gatehouse.foundation.siem.sending import BACKOFF_SECONDS, Senders
from gatehouse.outpost import durable_files
from gatehouse.outpost.records.journal_loop import JournalLoop
from gatehouse.outpost.records.positions import OutpostRecords
from gatehouse.outpost.settings import OutpostSettings

log = structlog.get_logger(__name__)

_FILE: Final = "siem.json"
#: Limits of one batch.
_BATCH_ENTRIES: Final = 500
_BATCH_BYTES: Final = 1024**2
#: Maximum time to send a batch, for all types of receivers.
_SEND_TIMEOUT_SECONDS: Final = 20.0
#: Networks of receivers. The operator chooses the receiver, so all networks are permitted. The guard refuses addresses
#: of cloud metadata nevertheless.
_ALL_NETWORKS: Final = ("0.0.0.0/0", "::/0")
_NO_TENANT: Final = UUID(int=0)
_OPERATED_PREFIX: Final = b'["operated",'


class _AuditRow(NamedTuple):
    """An audit event in the form that `events.of_audit` reads. It has no position in the audit chain, because only the
    platform has a chain."""

    id: UUID
    tenant_id: UUID
    timestamp: datetime
    action: str
    outcome: str
    reason: str | None
    actor_id: str | None
    actor_type: str
    request_id: str | None
    ip: str
    target_provider: str | None
    target_model: str | None
    details: dict[str, Any]
    resource_type: str | None = None
    resource_id: str | None = None
    sequence: int | None = None
    hash: bytes | None = None
    prev_hash: bytes | None = None


class _SendState(msgspec.Struct, frozen=True):
    """The position up to which each writer's journal has been sent, and the streams that are open at this position."""

    positions: dict[UUID, Position] = {}
    opened: dict[UUID, dict[str, Opened[str]]] = {}


class _SendBatch(NamedTuple):
    batch: Batch
    events: list[SiemEvent]
    #: the state after the events have been sent
    then: _SendState


class OutpostSiemStatus(msgspec.Struct):
    """The state of sending. Numbers count events since the start. `at` is the Unix time of the last sent batch."""

    sent: int = 0
    #: events that are too large for the receiver even alone
    skipped: int = 0
    waiting_bytes: int = 0
    at: float | None = None
    fault: str | None = None


class DirectSiem(JournalLoop):
    """Sends events from `start` to `stop`."""

    name = "siem"
    shutdown_timeout_seconds = 3.0

    def __init__(
        self,
        target: SiemTarget,
        secret: bytes,
        senders: Senders,
        records: OutpostRecords,
        *,
        outpost_id: UUID,
        folder: Path,
    ) -> None:
        super().__init__(records)
        self.type = target.type
        self.status = OutpostSiemStatus()
        self._target, self._secret, self._senders = target, secret, senders
        self._outpost_id = outpost_id
        self._path = folder / _FILE
        self._state = self._load()
        self._reader = records.follower()
        self._reader.resume(self._state.positions)

    def retry_seconds(self, failures: int) -> float:
        return BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1]

    async def test(self, tenant_id: UUID | None) -> None:
        """Sends one test event immediately. Raises `BatchRefused`."""
        await self._attempt([events.of_test(tenant_id or _NO_TENANT)])

    async def send_next(self) -> bool:
        """Sends one batch. Returns whether there may be more events. Raises `BatchRefused`, `OSError`."""
        work = await asyncio.to_thread(self._next)
        if work is not None:
            await self._send(work.events)
            await asyncio.to_thread(self._store, work)
        self.status.fault = None
        return work is not None and (work.batch.more or bool(work.batch.finished))

    async def _send(self, batch: Sequence[SiemEvent]) -> None:
        """Sends the events. If they are too large for one batch, sends them in smaller parts. Raises `BatchRefused`."""
        first, part_size = 0, len(batch)
        while first < len(batch):
            part = batch[first : first + part_size]
            try:
                await self._attempt(part)
            except BatchRefused as error:
                if not error.too_large:
                    raise
                if len(part) > 1:
                    part_size = len(part) // 2
                    continue
                # Skip this event. Otherwise later events would never be sent, and the journal would become full.
                log.warning("outpost.siem_event_too_large", event_id=str(part[0].id), bytes=len(part[0].body))
                self.status.skipped += 1
                self.status.sent -= 1
            first += len(part)
            self.status.sent += len(part)
            self.status.at = time.time()

    async def _attempt(self, batch: Sequence[SiemEvent]) -> None:
        target = msgspec.structs.replace(self._target, tenant_id=batch[0].tenant_id)
        try:
            async with asyncio.timeout(_SEND_TIMEOUT_SECONDS):
                await self._senders.send(target, self._secret, batch)
        except TimeoutError:
            raise BatchRefused(f"the receiver did not accept the events within {_SEND_TIMEOUT_SECONDS:g} s") from None

    def _next(self) -> _SendBatch | None:
        """Returns the events of the next entries of the oldest writer, or None if there are no entries. Raises
        `OSError`."""
        self.status.waiting_bytes = sum(segment.bytes for segment in self._reader.backlog())
        batch = self._reader.oldest(_BATCH_ENTRIES, _BATCH_BYTES)
        if not batch:
            return None
        (writer_id,) = batch.positions or batch.finished
        opened = dict(self._state.opened.get(writer_id, {}))
        outgoing = [event for line in batch.entries for event in self._events(line.payload, opened)]
        positions, open_streams = (
            {**self._state.positions, **batch.positions},
            {**self._state.opened, writer_id: opened},
        )
        if batch.finished:
            # The end of a process has interrupted its open streams.
            outgoing += [
                event for entry in opened.values() for event in self._of_request(audit_events.interrupted(entry))
            ]
            positions.pop(writer_id, None)
            del open_streams[writer_id]
        return _SendBatch(batch, outgoing, _SendState(positions, open_streams))

    def _events(self, line: bytes, opened: dict[str, Opened[str]]) -> Iterator[SiemEvent]:
        """Yields the events of an entry. Updates `opened`, which contains the streams without an outcome."""
        try:
            if line.startswith(_OPERATED_PREFIX):
                operated = upload_notices.read(msgspec.json.decode(line))
                assert isinstance(operated, Operated)
                yield events.of_audit(self._of_operator(operated))
                return
            entry = decode_with_text_ids(line)
            if isinstance(entry, Opened):
                opened[entry.id] = entry
                return
            opened.pop(entry.id, None)
            yield from self._of_request(entry)
        except (msgspec.MsgspecError, ValueError, OverflowError, OSError) as error:
            log.warning("outpost.siem_entry_unreadable", reason=type(error).__name__)

    def _of_request(self, entry: DlpEntry) -> Iterator[SiemEvent]:
        moment, tenant_id = datetime.fromtimestamp(entry.timestamp, UTC), UUID(entry.tenant_id)
        if isinstance(entry, Outcome | ToolCalled):
            yield events.of_audit(self._audit_row(entry, tenant_id, moment))
        for event_id, event in zip(audit_events.dlp_event_ids(entry), entry.dlp_events, strict=True):
            yield events.of_dlp(tenant_id, _dlp_row(entry, event_id, event), moment)

    def _audit_row(self, entry: Outcome[str] | ToolCalled[str], tenant_id: UUID, moment: datetime) -> _AuditRow:
        if isinstance(entry, ToolCalled):
            action, details = audit_events.TOOL_CALL, audit_events.tool_call_details(entry, self._outpost_id)
            server_id: str | None = entry.server_id
        else:
            action, details = audit_events.ACTION, audit_events.details(entry, self._outpost_id)
            server_id = None
        return _AuditRow(
            id=UUID(entry.id),
            tenant_id=tenant_id,
            timestamp=moment,
            action=action,
            outcome=entry.outcome,
            reason=entry.error_code,
            actor_id=entry.user_id or entry.client_id,
            actor_type=entry.actor_type,
            request_id=entry.request_id,
            ip=entry.ip,
            target_provider=entry.provider,
            target_model=entry.model_id,
            details=details,
            resource_type=None if server_id is None else audit_events.MCP_SERVER,
            resource_id=server_id,
        )

    def _of_operator(self, call: Operated) -> _AuditRow:
        return _AuditRow(
            id=call.id,
            tenant_id=call.tenant_id or _NO_TENANT,
            timestamp=datetime.fromtimestamp(call.timestamp, UTC),
            action=audit_events.OPERATED,
            outcome="success",
            reason=None,
            actor_id=str(self._outpost_id),
            actor_type=CallerKind.OUTPOST,
            request_id=None,
            ip=call.ip,
            target_provider=None,
            target_model=None,
            details=audit_events.operator_details(call),
            resource_type="outpost",
            resource_id=str(self._outpost_id),
        )

    def _store(self, work: _SendBatch) -> None:
        """Stores the position after a sent batch. Raises `OSError`: the batch is then sent again."""
        durable_files.write(self._path, msgspec.json.encode(work.then))
        self._state = work.then
        self._reader.release(work.batch)

    def _load(self) -> _SendState:
        try:
            state = msgspec.json.decode(durable_files.read(self._path) or b"{}", type=_SendState)
        except msgspec.DecodeError as error:
            log.warning("outpost.siem_position_unreadable", reason=str(error))
            return _SendState()
        writers = {path.name for path in self.records.journal.iterdir()}
        return _SendState(
            {writer_id: position for writer_id, position in state.positions.items() if str(writer_id) in writers},
            {writer_id: streams for writer_id, streams in state.opened.items() if str(writer_id) in writers},
        )

    def failed(self, error: Exception) -> None:
        reason = error.reason if isinstance(error, BatchRefused) else f"an unexpected error: {type(error).__name__}"
        if self.status.fault != reason:
            if not isinstance(error, BatchRefused):
                log.error("outpost.siem_fault", exc_info=error)
            log.warning("outpost.siem_failed", reason=reason)
        self.status.fault = reason


def _dlp_row(entry: DlpEntry, event_id: str, event: DlpEvent) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(event),
        "id": event_id,
        "request_id": entry.request_id,
        "user_id": entry.user_id,
        "group_ids": entry.group_ids,
        "model": audit_events.model_of(entry),
    }


def receivers_of(settings: OutpostSettings) -> Receivers:
    """Returns the HTTP client for receivers. The caller must close it. Raises `BadSettings`."""
    return Receivers(EgressGuard(_ALL_NETWORKS), tls=_trust(settings.siem_direct_ca_bundle))


def direct(settings: OutpostSettings, receivers: Receivers, records: OutpostRecords) -> DirectSiem | None:
    """Returns the sender for the configured receiver, or None without one. Raises `BadSettings`."""
    if settings.siem_direct_type is None:
        return None
    assert settings.outpost_id is not None
    secret = settings.siem_direct_token.get_secret_value() if settings.siem_direct_token else ""
    senders = Senders(receivers, settings.gatehouse_home)
    return DirectSiem(
        target(settings),
        secret.encode(),
        senders,
        records,
        outpost_id=settings.outpost_id,
        folder=settings.folder,
    )


def target(settings: OutpostSettings) -> SiemTarget:
    """Returns the configured receiver. Raises `BadSettings`."""
    kind, url = settings.siem_direct_type, settings.siem_direct_url
    assert kind is not None
    if kind == "file":
        return SiemTarget(tenant_id=_NO_TENANT, type=kind)
    if kind == "syslog":
        return _syslog(url or "", settings.siem_direct_ca_bundle)
    if not (url or "").startswith("https://"):
        raise BadSettings(f"SIEM_DIRECT_URL: must begin with https:// for {kind}")
    if settings.siem_direct_token is None:
        raise BadSettings(f"SIEM_DIRECT_TOKEN: {kind} needs a token")
    return SiemTarget(tenant_id=_NO_TENANT, type=kind, url=url, index=settings.siem_direct_index)


def _syslog(url: str, authorities: Path | None) -> SiemTarget:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme not in {"tcp", "tls"}:
        raise BadSettings("SIEM_DIRECT_URL: for syslog, must be tcp://host:port or tls://host:port")
    _trust(authorities)
    pem = authorities.read_text() if authorities is not None and parts.scheme == "tls" else None
    return SiemTarget(tenant_id=_NO_TENANT, type=f"syslog_{parts.scheme}", host=host, port=port, ca_certificate=pem)


def _trust(authorities: Path | None) -> ssl.SSLContext | None:
    if authorities is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(authorities))
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(f"SIEM_DIRECT_CA_BUNDLE: cannot be loaded ({error})") from None
