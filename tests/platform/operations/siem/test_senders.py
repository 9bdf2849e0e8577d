"""Senders for each type of receiver, checked at the receiver."""

import asyncio
import hashlib
import hmac
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from tests.platform.operations.siem.conftest import Siem
from tests.support.receiver import certificate

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.siem.events import SiemEvent, of_test
from gatehouse.foundation.siem.senders import file
from gatehouse.foundation.siem.senders.sender import BatchRefused
from gatehouse.foundation.siem.senders.syslog import frame
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.siem.sending import SealedSenders, SealedTarget

#: A message of RFC 5424, section 6, with its text after the structured data.
_MESSAGE = re.compile(
    rb"<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z) ([!-~]{1,255}) (gatehouse) - ([!-~]{1,32})"
    rb" (\[gatehouse@32473(?: [a-z]+=\"(?:[^\"\\\]]|\\[\"\\\]])*\")+\]) (\{.*\})",
    re.DOTALL,
)


def messages(data: bytes) -> list[bytes]:
    """Split messages by their lengths (RFC 6587, section 3.4.1)."""
    results = []
    while data:
        length, _, data = data.partition(b" ")
        results.append(data[: int(length)])
        assert len(results[-1]) == int(length)
        data = data[int(length) :]
    return results


class Log:
    """A syslog receiver. It breaks a connection after `stop_after` bytes, like a killed process."""

    def __init__(self) -> None:
        self.port = 0
        #: The data of each connection.
        self.connections: list[bytes] = []
        self.stop_after: int | None = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        while chunk := await reader.read(4096):
            data += chunk
            if self.stop_after is not None and len(data) >= self.stop_after:
                writer.transport.abort()
                return
        self.connections.append(data)
        writer.close()


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[Log]:
    log = Log()
    server = await asyncio.start_server(log._serve, "127.0.0.1", 0, ssl=tls)
    log.port = server.sockets[0].getsockname()[1]
    try:
        yield log
    finally:
        server.close()


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate())
    return context


def authority() -> str:
    return certificate().read_text().partition("-----BEGIN PRIVATE")[0]


def target(kind: str, **fields: object) -> SealedTarget:
    empty = dict.fromkeys(("url", "host", "port", "ca_certificate", "index", "sealed_secret"))
    return SealedTarget(**{**empty, "tenant_id": new_id(), "type": kind, **fields})  # type: ignore[arg-type]


@pytest.fixture
def senders(tools: Tools) -> SealedSenders:
    return SealedSenders(tools.receivers, tools.sealer, tools.settings.gatehouse_home)


@pytest.fixture
def events() -> list[SiemEvent]:
    return [of_test(new_id()) for _ in range(500)]


KINDS: dict[str, Callable[[], ssl.SSLContext | None]] = {"syslog_tcp": lambda: None, "syslog_tls": tls}


@pytest.mark.parametrize("kind", KINDS)
async def test_syslog_gets_each_event_as_a_message_with_its_length(
    senders: SealedSenders, events: list[SiemEvent], kind: str
) -> None:
    authorities = {"ca_certificate": authority()} if kind == "syslog_tls" else {}
    async with listening(KINDS[kind]()) as log:
        await senders.send(target(kind, host="localhost", port=log.port, **authorities), events)
    (data,) = log.connections
    for message, event in zip(messages(data), events, strict=True):
        match = _MESSAGE.fullmatch(message)
        assert match, message
        # The facility "log audit" with the severity "informational".
        assert (match[1], match[5], match[7]) == (b"110", b"gatehouse.test", event.body)
        assert f'id="{event.id}" tenant="{event.tenant_id}"'.encode() in match[6]


def test_structured_data_is_escaped() -> None:
    event = of_test(new_id())._replace(action='a"b\\c]d', sequence=7)
    match = _MESSAGE.fullmatch(messages(frame(event))[0])
    assert match
    assert rb'action="a\"b\\c\]d" sequence="7"' in match[6]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop_after", [1, 40_000])
async def test_a_batch_is_not_accepted_if_the_syslog_receiver_is_killed_while_reading(
    senders: SealedSenders, events: list[SiemEvent], kind: str, stop_after: int
) -> None:
    authorities = {"ca_certificate": authority()} if kind == "syslog_tls" else {}
    async with listening(KINDS[kind]()) as log:
        log.stop_after = stop_after
        with pytest.raises(BatchRefused):
            await senders.send(target(kind, host="127.0.0.1", port=log.port, **authorities), events)


async def test_a_syslog_receiver_that_never_reads_costs_only_its_timeout(
    senders: SealedSenders, events: list[SiemEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatehouse.foundation.siem.senders.syslog._TIMEOUT_SECONDS", 0.5)

    async def sleep(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    for context in (None, tls()):
        server = await asyncio.start_server(sleep, "127.0.0.1", 0, ssl=context)
        kind = "syslog_tls" if context else "syslog_tcp"
        to = target(
            kind, host="localhost", port=server.sockets[0].getsockname()[1],
            ca_certificate=authority() if context else None,
        )  # fmt: skip
        with pytest.raises(BatchRefused, match=r"within 0\.5 s|broken|closed"):
            await senders.send(to, events)
        server.close()


async def test_a_certificate_of_another_authority_is_not_trusted(
    senders: SealedSenders, events: list[SiemEvent]
) -> None:
    async with listening(tls()) as log:
        with pytest.raises(BatchRefused, match="certificate is not trusted"):
            await senders.send(target("syslog_tls", host="localhost", port=log.port), events)
    assert log.connections == []


async def test_an_unreachable_receiver_is_reported(senders: SealedSenders, events: list[SiemEvent]) -> None:
    async with listening() as log:
        pass
    with pytest.raises(BatchRefused, match="connection could not be made"):
        await senders.send(target("syslog_tcp", host="localhost", port=log.port), events)


async def test_forwarding_to_syslog_continues_where_a_killed_receiver_stopped(siem: Siem) -> None:
    async with listening(tls()) as log:
        await siem.begin(type="syslog_tls", host="localhost", port=log.port, ca_certificate=authority())
        await siem.record(1500)
        log.stop_after = 100_000
        await siem.forward()
        assert (await siem.status())["backlog"] == 1501
        log.stop_after = None
        await siem.retry()
        assert (await siem.status())["backlog"] == 0
    results = [re.search(rb'sequence="(\d+)"', message) for data in log.connections for message in messages(data)]
    assert [int(item[1]) for item in results if item] == siem.stored_sequences()[-1501:]


async def test_a_webhook_gets_batches_that_are_signed_like_webhooks(siem: Siem) -> None:
    await siem.begin(type="webhook", url=siem.receiver.url, secret="a signing secret")
    await siem.record(2)
    await siem.forward()
    (got,) = siem.receiver.got
    digest = hmac.new(b"a signing secret", got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
    assert got.headers["X-Webhook-Signature"] == digest
    assert got.json["event_type"] == "siem_events"
    sequences = [event["event"]["sequence"] for event in got.json["payload"]["events"]]
    assert sequences == siem.stored_sequences()[-3:]


async def test_a_file_gets_a_line_for_each_event_below_the_organizations_folder(siem: Siem, tools: Tools) -> None:
    await siem.begin()
    siem.platform.sql("UPDATE siem_targets SET type = 'file' WHERE tenant_id = %s", [siem.tenant.id])
    await siem.record(1200)
    await siem.forward()
    path = tools.settings.gatehouse_home / "siem" / str(siem.tenant.id) / "events.jsonl"
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    assert [line["event"]["sequence"] for line in lines] == siem.stored_sequences()[-1201:]
    assert path.stat().st_mode & 0o077 == 0


def test_an_incomplete_line_of_a_killed_process_does_not_affect_the_next(tmp_path: Path) -> None:
    file.append(tmp_path, b'{"a": 1}\n{"b"')
    file.append(tmp_path, b'{"c": 3}\n')
    assert (tmp_path / file.NAME).read_bytes() == b'{"a": 1}\n{"b"\n{"c": 3}\n'


def test_files_are_rotated_and_the_oldest_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(file, "MAX_FILES", 3)
    for n in range(5):
        file.append(tmp_path, f"{n}-45678\n".encode())
        file.append(tmp_path, b"x\n")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["events.jsonl.1", "events.jsonl.2"]
    assert (tmp_path / "events.jsonl.1").read_bytes().startswith(b"4-")
    assert (tmp_path / "events.jsonl.2").read_bytes().startswith(b"3-")


async def test_an_unwritable_file_is_reported(senders: SealedSenders, tools: Tools, events: list[SiemEvent]) -> None:
    to = target("file")
    (tools.settings.gatehouse_home / "siem").write_text(str(uuid4()))
    with pytest.raises(BatchRefused, match="cannot be written"):
        await senders.send(to, events)
