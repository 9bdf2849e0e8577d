"""This outpost's requests, told to a SIEM straight from here (`SIEM_DIRECT_*`; docs/siem.md has the fields): also while
the platform is away, and where nothing may go there.

Each entry of the journal becomes the events that the platform forwards of it, under the same ids. They are sent at
least once and in their order: what the receiver has not taken stays in the journal, whether the platform has it or not.
"""

import asyncio
import contextlib
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

from gatehouse.engine import audited, notices
from gatehouse.engine.audited import Found
from gatehouse.engine.notices import Operated
from gatehouse.engine.outcome import DlpEvent, Opened, Outcome, decode_with_text_ids
from gatehouse.foundation.egress import EgressGuard
from gatehouse.foundation.identity import CallerKind
from gatehouse.foundation.journal import Batch, Position
from gatehouse.foundation.receivers import Receivers
from gatehouse.foundation.settings import BadSettings
from gatehouse.foundation.siem import events
from gatehouse.foundation.siem.events import Forwarded
from gatehouse.foundation.siem.senders.sender import NotTaken, Target
from gatehouse.foundation.siem.sending import BACKOFF_SECONDS, Senders
from gatehouse.outpost import kept
from gatehouse.outpost.records import Records
from gatehouse.outpost.settings import OutpostSettings

log = structlog.get_logger(__name__)

_FILE: Final = "siem.json"
#: Of one batch, read and sent.
_MOST: Final = 500
_BYTES: Final = 1024**2
#: Seconds for a batch, whatever the type of the receiver.
_SECONDS: Final = 20.0
#: Seconds between two looks at a journal of which everything is sent.
_PAUSE: Final = 0.5
#: Seconds for what is left, when the outpost ends.
_LAST_WORDS: Final = 3.0
#: The operator's own network: all but cloud metadata.
_ANYWHERE: Final = ("0.0.0.0/0", "::/0")
_NOBODY: Final = UUID(int=0)
_OPERATED: Final = b'["operated",'


class _Row(NamedTuple):
    """As `events.of_audit` reads it. It has no place in a chain: that is the platform's."""

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


class _Kept(msgspec.Struct, frozen=True):
    """By writer: what was sent of its journal, and the streams that were open there."""

    positions: dict[UUID, Position] = {}
    opened: dict[UUID, dict[str, Opened[str]]] = {}


class _Work(NamedTuple):
    batch: Batch
    events: list[Forwarded]
    #: once they are sent
    then: _Kept


class SiemStatus(msgspec.Struct):
    """Since the start. Times are Unix times."""

    sent: int = 0
    #: events that the receiver finds too large even alone
    skipped: int = 0
    waiting_bytes: int = 0
    at: float | None = None
    fault: str | None = None


class DirectSiem:
    """From `start` to `stop`."""

    def __init__(
        self, target: Target, secret: bytes, senders: Senders, records: Records, *, outpost_id: UUID, folder: Path
    ) -> None:
        self.type = target.type
        self.status = SiemStatus()
        self._target, self._secret, self._senders = target, secret, senders
        self._records = records
        self._outpost_id = outpost_id
        self._path = folder / _FILE
        self._kept = self._read()
        self._reader = records.follower()
        self._reader.resume(self._kept.positions)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="siem")

    async def stop(self) -> None:
        """What is left is sent, if the receiver takes it at once; else the next start does it."""
        self._stopping.set()
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=_LAST_WORDS)
            for task in late:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def test(self, tenant_id: UUID | None) -> None:
        """Sends one event now. Raises `NotTaken`."""
        await self._attempt([events.of_test(tenant_id or _NOBODY)])

    async def _run(self) -> None:
        while not await asyncio.to_thread(self._records.claim):
            if await self._stopped(_PAUSE):
                return
        failures = 0
        while True:
            stopping = self._stopping.is_set()
            try:
                more, failures, self.status.fault = await self._once(), 0, None
            except NotTaken as error:
                self._failed(error.reason)
                more, failures = False, failures + 1
            except Exception as error:
                # What nobody has thought of must not keep events here for ever.
                self._failed(f"an unexpected fault: {type(error).__name__}")
                log.exception("outpost.siem_fault")
                more, failures = False, failures + 1
            if stopping and not more:
                return
            if not more:
                await self._stopped(BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1] if failures else _PAUSE)

    async def _once(self) -> bool:
        """Whether there may be more. Raises `NotTaken`, `OSError`."""
        work = await asyncio.to_thread(self._next)
        if work is None:
            return False
        await self._send(work.events)
        await asyncio.to_thread(self._note, work)
        return work.batch.more or bool(work.batch.finished)

    async def _send(self, batch: Sequence[Forwarded]) -> None:
        """What is too large is sent in parts. Raises `NotTaken`."""
        first, most = 0, len(batch)
        while first < len(batch):
            part = batch[first : first + most]
            try:
                await self._attempt(part)
            except NotTaken as error:
                if not error.too_large:
                    raise
                if len(part) > 1:
                    most = len(part) // 2
                    continue
                # For ever too large: those behind it must not wait for it, nor requests for room in the journal.
                log.warning("outpost.siem_event_too_large", event_id=str(part[0].id), bytes=len(part[0].body))
                self.status.skipped += 1
                self.status.sent -= 1
            first += len(part)
            self.status.sent += len(part)
            self.status.at = time.time()

    async def _attempt(self, batch: Sequence[Forwarded]) -> None:
        target = msgspec.structs.replace(self._target, tenant_id=batch[0].tenant_id)
        try:
            async with asyncio.timeout(_SECONDS):
                await self._senders.send(target, self._secret, batch)
        except TimeoutError:
            raise NotTaken(f"not taken within {_SECONDS:g} s") from None

    def _next(self) -> _Work | None:
        """The oldest writer's next entries, as events. Raises `OSError`."""
        self.status.waiting_bytes = sum(each.bytes for each in self._reader.backlog())
        batch = self._reader.oldest(_MOST, _BYTES)
        if not batch:
            return None
        (writer_id,) = batch.positions or batch.finished
        opened = dict(self._kept.opened.get(writer_id, {}))
        found = [event for line in batch.entries for event in self._events(line.payload, opened)]
        positions, open_streams = {**self._kept.positions, **batch.positions}, {**self._kept.opened, writer_id: opened}
        if batch.finished:
            # Nobody goes on with what a dead process had begun.
            found += [event for each in opened.values() for event in self._of_request(audited.interrupted(each))]
            positions.pop(writer_id, None)
            del open_streams[writer_id]
        return _Work(batch, found, _Kept(positions, open_streams))

    def _events(self, line: bytes, opened: dict[str, Opened[str]]) -> Iterator[Forwarded]:
        """`opened` follows the streams that begin and end."""
        try:
            if line.startswith(_OPERATED):
                operated = notices.read(msgspec.json.decode(line))
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

    def _of_request(self, entry: Found) -> Iterator[Forwarded]:
        moment, tenant_id = datetime.fromtimestamp(entry.timestamp, UTC), UUID(entry.tenant_id)
        if isinstance(entry, Outcome):
            yield events.of_audit(
                _Row(
                    id=UUID(entry.id),
                    tenant_id=tenant_id,
                    timestamp=moment,
                    action=audited.ACTION,
                    outcome=entry.outcome,
                    reason=entry.error_code,
                    actor_id=entry.user_id or entry.client_id,
                    actor_type=entry.actor_type,
                    request_id=entry.request_id,
                    ip=entry.ip,
                    target_provider=entry.provider,
                    target_model=entry.model_id,
                    details=audited.details(entry, self._outpost_id),
                )
            )
        for event_id, event in zip(audited.dlp_event_ids(entry), entry.dlp_events, strict=True):
            yield events.of_dlp(tenant_id, _dlp_row(entry, event_id, event), moment)

    def _of_operator(self, call: Operated) -> _Row:
        return _Row(
            id=call.id,
            tenant_id=call.tenant_id or _NOBODY,
            timestamp=datetime.fromtimestamp(call.timestamp, UTC),
            action=audited.OPERATED,
            outcome="success",
            reason=None,
            actor_id=str(self._outpost_id),
            actor_type=CallerKind.OUTPOST,
            request_id=None,
            ip=call.ip,
            target_provider=None,
            target_model=None,
            details=audited.operator_details(call),
            resource_type="outpost",
            resource_id=str(self._outpost_id),
        )

    def _note(self, work: _Work) -> None:
        """Raises `OSError`; it is sent again then."""
        kept.write(self._path, msgspec.json.encode(work.then))
        self._kept = work.then
        self._reader.release(work.batch)

    def _read(self) -> _Kept:
        try:
            found = msgspec.json.decode(kept.read(self._path) or b"{}", type=_Kept)
        except msgspec.DecodeError as error:
            log.warning("outpost.siem_position_unreadable", reason=str(error))
            return _Kept()
        there = {path.name for path in self._records.journal.iterdir()}
        return _Kept(
            {writer_id: position for writer_id, position in found.positions.items() if str(writer_id) in there},
            {writer_id: streams for writer_id, streams in found.opened.items() if str(writer_id) in there},
        )

    def _failed(self, reason: str) -> None:
        if self.status.fault != reason:
            log.warning("outpost.siem_failed", reason=reason)
        self.status.fault = reason

    async def _stopped(self, seconds: float) -> bool:
        """Waits, and says whether it was told to stop."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()


def _dlp_row(entry: Found, event_id: str, event: DlpEvent) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(event),
        "id": event_id,
        "request_id": entry.request_id,
        "user_id": entry.user_id,
        "group_ids": entry.group_ids,
        "model": audited.model_of(entry),
    }


def receivers_of(settings: OutpostSettings) -> Receivers:
    """Closed by whoever asked for them. Raises `BadSettings`."""
    return Receivers(EgressGuard(_ANYWHERE), tls=_trust(settings.siem_direct_ca_bundle))


def direct(settings: OutpostSettings, receivers: Receivers, records: Records) -> DirectSiem | None:
    """None where no receiver is set. Raises `BadSettings`."""
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


def target(settings: OutpostSettings) -> Target:
    """Raises `BadSettings`."""
    kind, url = settings.siem_direct_type, settings.siem_direct_url
    assert kind is not None
    if kind == "file":
        return Target(tenant_id=_NOBODY, type=kind)
    if kind == "syslog":
        return _syslog(url or "", settings.siem_direct_ca_bundle)
    if not (url or "").startswith("https://"):
        raise BadSettings(f"SIEM_DIRECT_URL: must begin with https:// for {kind}")
    if settings.siem_direct_token is None:
        raise BadSettings(f"SIEM_DIRECT_TOKEN: {kind} needs one")
    return Target(tenant_id=_NOBODY, type=kind, url=url, index=settings.siem_direct_index)


def _syslog(url: str, authorities: Path | None) -> Target:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme not in {"tcp", "tls"}:
        raise BadSettings("SIEM_DIRECT_URL: for syslog, tcp://host:port or tls://host:port")
    _trust(authorities)
    pem = authorities.read_text() if authorities is not None and parts.scheme == "tls" else None
    return Target(tenant_id=_NOBODY, type=f"syslog_{parts.scheme}", host=host, port=port, ca_certificate=pem)


def _trust(authorities: Path | None) -> ssl.SSLContext | None:
    if authorities is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(authorities))
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(f"SIEM_DIRECT_CA_BUNDLE: cannot be loaded ({error})") from None
