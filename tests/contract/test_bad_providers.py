"""Providers that fail in different ways, over real sockets: each failure leads to a clear error and one record, and
leaves no connection open."""

import asyncio
import gzip
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import msgspec
import pytest
from tests.contract.conftest import CARRIERS, CarriedBy
from tests.support.engine import completion
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import serving
from tests.support.upstream import Behave, Connection, upstream

from gatehouse.engine.records.outcome import Outcome, decode
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.carriers import Carrier, open_outbound

#: The default number of failures in a row that opens a circuit.
CIRCUIT_FAILURES = 5

OK = b"HTTP/1.1 200 OK\r\n"
MESSAGES = [{"role": "user", "content": "hi"}]


def status(code: int) -> Behave:
    async def behave(connection: Connection) -> None:
        await connection.answer(b'{"error": {"message": "upstream words with sk-abcdefghijklmnop"}}', status=code)

    return behave


async def silent(connection: Connection) -> None:
    # The read returns when the gateway closes the connection.
    await connection.reader.read(1)


async def hangs_up(connection: Connection) -> None:
    connection.writer.transport.abort()


async def half_an_answer(connection: Connection) -> None:
    await connection.send(b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"id": "x", ')
    connection.writer.transport.abort()


async def garbage(connection: Connection) -> None:
    await connection.answer(b"<html>not a model</html>", kind="text/html")


def says(*parts: bytes) -> Behave:
    async def behave(connection: Connection) -> None:
        for part in parts:
            await connection.send(part)
            # The pause separates the pieces.
            await asyncio.sleep(0.02)
        raise ConnectionError

    return behave


async def resets(connection: Connection) -> None:
    wire = connection.writer.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.writer.transport.abort()


async def no_http(connection: Connection) -> None:
    await connection.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    connection.writer.close()


async def a_hundred_megabytes(connection: Connection) -> None:
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(100):
        await connection.chunk(b"x" * 1024 * 1024)
    await connection.end_stream()


async def stream_cut(connection: Connection) -> None:
    await connection.begin_stream()
    chunk = {"choices": [{"index": 0, "delta": {"content": "partly"}}]}
    await connection.chunk(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    await asyncio.sleep(0.05)
    connection.writer.transport.abort()


async def stream_garbage(connection: Connection) -> None:
    await connection.begin_stream()
    await connection.chunk(b"<html>")
    await connection.end_stream()


async def endless_event(connection: Connection) -> None:
    await connection.begin_stream()
    await connection.chunk(b"data: ")
    for _ in range(100):
        await connection.chunk(b"x" * 1024 * 1024)


async def drips(connection: Connection) -> None:
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    while True:
        await connection.send(b" ")
        await asyncio.sleep(0.05)


async def only_pings(connection: Connection) -> None:
    await connection.begin_stream()
    while True:
        await connection.chunk(b": ping\n\n")
        await asyncio.sleep(0.05)


#: A provider's name for each HTTP client. All have the same length, because the record includes the request's size.
NAMES: dict[str, str] = {carrier: f"p-{carrier:->8}" for carrier in CARRIERS}


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


def outcomes(home: Path, tenant: Tenant) -> list[Outcome]:
    """Return the outcomes of a tenant's requests in the journal."""
    result, name = [], str(tenant.id).encode()
    for segment in sorted((home / "journal").rglob("*.log")):
        for line in segment.read_bytes().split(b"\n"):
            if name in line:
                entry = decode(line[line.index(b"[") :])
                if isinstance(entry, Outcome):
                    result.append(entry)
    return result


@pytest.mark.parametrize(
    ("behave", "stream", "code", "reason"),
    [
        (status(500), False, 502, "http_500"),
        (status(503), True, 502, "http_503"),
        (status(429), False, 502, "rate_limited"),
        (status(401), False, 502, "unauthorized"),
        (silent, False, 504, "timeout"),
        (silent, True, 504, "timeout"),
        (hangs_up, False, 502, "connection_closed"),
        (half_an_answer, False, 502, "connection_closed"),
        (garbage, False, 502, "bad_reply"),
        (garbage, True, 502, "bad_reply"),
        (no_http, False, 502, "connection_closed"),
        (resets, False, 502, "connection_closed"),
        (resets, True, 502, "connection_closed"),
        (says(b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"), False, 502, "http_302"),
        (says(b"HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxx"), False, 502, "connection_closed"),
        (says(OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{} "), False, 502, "connection_closed"),
        (says(OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}"), False, 502, "connection_closed"),
        (says(OK + b"content-encoding: gzip\r\ncontent-length: 8\r\n\r\nnot gzip"), False, 502, "connection_closed"),
        (says(OK + b"content-encoding: br\r\ncontent-length: 2\r\n\r\n{}"), False, 502, "connection_closed"),
        (says(OK + b"transfer-encoding: chunked\r\n\r\n", b"zz\r\n{}\r\n"), False, 502, "connection_closed"),
        (says(OK + b"x: " + b"y" * 200_000), False, 502, "connection_closed"),
        (says(OK + b"content-length: 0\r\n\r\n"), False, 502, "bad_reply"),
        (says(OK + b"content-length: 0\r\n\r\n"), True, 502, "connection_closed"),
        (says(b"HTTP/1.1 204 No Content\r\n\r\n"), False, 502, "bad_reply"),
        (a_hundred_megabytes, False, 502, "reply_too_large"),
        (stream_garbage, True, 502, "bad_reply"),
        (endless_event, True, 502, "bad_reply"),
    ],
)
async def test_a_failing_provider_is_a_clear_error_and_one_record(
    platform: RunningPlatform, tenant: Tenant, url: str, carried_by: CarriedBy,
    behave: Behave, stream: bool, code: int, reason: str,
) -> None:  # fmt: skip
    messages = []
    for carrier in CARRIERS:
        async with carried_by(carrier), upstream(behave) as provider:
            answer, body = await ask(platform, tenant, url, provider.url, name=NAMES[carrier], stream=stream)
            assert answer == code, body
            error = json.loads(body)["error"]
            assert error["type"] == "provider_error"
            (attempt,) = error["attempts"]
            assert attempt["reason"] == reason
            assert "sk-abcdefghijklmnop" not in body
            assert "upstream words" not in body
            outcome = outcomes(platform.installed.home, tenant)[-1]
            assert (outcome.status, outcome.outcome) == (code, "error")
            # A call that was sent and not answered in time is charged, because the provider may have processed it.
            assert (outcome.cost_usd is not None) == (reason == "timeout")
            messages.append((without(NAMES[carrier], error), without(NAMES[carrier], outcome)))
            # The connection to the provider is closed, or idle in the pool, and not left open with unread bytes.
            if behave in {silent, a_hundred_megabytes, endless_event}:
                await asyncio.wait_for(provider.closed_by_client.wait(), 5)
    assert messages[0] == messages[1]
    assert len(outcomes(platform.installed.home, tenant)) == len(CARRIERS)


@pytest.mark.parametrize("why", ["nobody listens", "an unknown authority", "no such name"])
async def test_an_unreachable_provider_is_the_same_error_with_each_http_client(
    platform: RunningPlatform, tenant: Tenant, url: str, carried_by: CarriedBy, monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:  # fmt: skip
    look_up = socket.getaddrinfo

    def nowhere(host: str | None, *args: Any, **more: Any) -> Any:
        if host == "provider.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    messages = []
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(upstream(hangs_up, tls=serving()))
        base = provider.url if why == "an unknown authority" else "https://provider.example"
        if why == "nobody listens":
            await stack.aclose()
            base = provider.url
        for carrier in CARRIERS:
            async with carried_by(carrier):
                answer, body = await ask(platform, tenant, url, base, name=NAMES[carrier])
            (attempt,) = json.loads(body)["error"]["attempts"]
            assert (answer, attempt["reason"]) == (502, "connect_failed")
            outcome = outcomes(platform.installed.home, tenant)[-1]
            messages.append((without(NAMES[carrier], json.loads(body)), without(NAMES[carrier], outcome)))
    assert messages[0] == messages[1]
    assert not provider.requests


WELL: bytes = completion("Hello there")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: %d\r\n\r\n%b" % (len(WELL), WELL),
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + OK + b"content-length: %d\r\n\r\n%b" % (len(WELL), WELL),
        OK + b"transfer-encoding: chunked\r\n\r\n%x;a=b\r\n%b\r\n0\r\nx-sum: 1\r\n\r\n" % (len(WELL), WELL),
        OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b" % (len(PACKED := gzip.compress(WELL)), PACKED),
        b"HTTP/1.0 200 OK\r\n\r\n" + WELL,
        OK + b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(WELL), WELL),
        OK + b"content-length: %d\r\n\r\n%b" % (len(WELL), WELL) + OK + b"content-length: 9\r\n\r\nof nobody",
    ],
    ids=["continue", "hints", "chunked", "gzip", "until the end", "closing", "another behind it"],
)
async def test_an_unusual_complete_answer_is_forwarded_and_charged_equally_with_each_http_client(
    platform: RunningPlatform, tenant: Tenant, url: str, carried_by: CarriedBy, answer: bytes
) -> None:
    async def odd(connection: Connection) -> None:
        await connection.send(answer)
        raise ConnectionError

    messages = []
    for carrier in CARRIERS:
        async with carried_by(carrier), upstream(odd) as provider:
            status_, body = await ask(platform, tenant, url, provider.url, name=NAMES[carrier])
            assert status_ == 200, body
            outcome = outcomes(platform.installed.home, tenant)[-1]
            assert (outcome.outcome, outcome.attempts) == ("success", ())
            assert outcome.cost_usd is not None
            messages.append((without(NAMES[carrier], json.loads(body)), without(NAMES[carrier], outcome)))
    assert messages[0] == messages[1]
    assert len(outcomes(platform.installed.home, tenant)) == len(CARRIERS)


async def test_an_interrupted_stream_ends_with_an_error_event(
    platform: RunningPlatform, tenant: Tenant, url: str, carried_by: CarriedBy
) -> None:
    messages = []
    for carrier in CARRIERS:
        async with carried_by(carrier), upstream(stream_cut) as provider:
            answer, body = await ask(platform, tenant, url, provider.url, name=NAMES[carrier], stream=True)
        assert answer == 200
        assert "partly" in body
        last = body.strip().split("\n\n")[-1]
        error = json.loads(last[last.index("{") :])
        assert error["error"]["type"] == "provider_error"
        outcome = outcomes(platform.installed.home, tenant)[-1]
        assert outcome.outcome == "error"
        assert outcome.output_tokens, "generated output is charged even if the provider reports no usage"
        messages.append((without(NAMES[carrier], error), without(NAMES[carrier], outcome)))
    assert messages[0] == messages[1]
    assert len(outcomes(platform.installed.home, tenant)) == len(CARRIERS)


@pytest.mark.usefixtures("carrier")
async def test_a_disconnecting_client_cancels_the_providers_call_within_a_second(
    platform: RunningPlatform, tenant: Tenant, url: str
) -> None:
    async with upstream(silent) as provider:
        asking = asyncio.create_task(ask(platform, tenant, url, provider.url, timeout_ms=30_000))
        while not provider.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait_for(provider.closed_by_client.wait(), 1)
    for _ in range(100):
        if outcomes(platform.installed.home, tenant):
            break
        await asyncio.sleep(0.01)
    (outcome,) = outcomes(platform.installed.home, tenant)
    assert outcome.outcome == "cancelled"


@pytest.mark.parametrize(("behave", "stream"), [(drips, False), (only_pings, True), (silent, False)])
async def test_a_provider_without_an_event_is_abandoned_at_the_deadline(
    platform: RunningPlatform,
    tenant: Tenant,
    url: str,
    carried_by: CarriedBy,
    monkeypatch: pytest.MonkeyPatch,
    behave: Behave,
    stream: bool,
) -> None:
    monkeypatch.setattr(platform.host.engine._attempts, "_deadlines", Deadlines(0.5))
    messages = []
    for carrier in CARRIERS:
        async with carried_by(carrier), upstream(behave) as provider:
            answer, body = await ask(
                platform, tenant, url, provider.url, name=NAMES[carrier], stream=stream, timeout_ms=30_000
            )
            assert (answer, json.loads(body)["error"]["code"]) == (504, "provider_timeout"), body
            await asyncio.wait_for(provider.closed_by_client.wait(), 5)
        outcome = outcomes(platform.installed.home, tenant)[-1]
        assert (outcome.status, outcome.outcome) == (504, "error")
        messages.append((without(NAMES[carrier], json.loads(body)), without(NAMES[carrier], outcome)))
    assert messages[0] == messages[1]
    assert len(outcomes(platform.installed.home, tenant)) == len(CARRIERS)


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_calls_that_find_no_free_connection_are_503_and_open_no_circuit(
    platform: RunningPlatform, tenant: Tenant, url: str, monkeypatch: pytest.MonkeyPatch, carrier: Carrier
) -> None:
    release = asyncio.Event()

    async def slow(connection: Connection) -> None:
        await release.wait()
        await connection.answer(completion("Hello"))

    small = open_outbound(carrier, 1, EgressGuard())
    monkeypatch.setattr(platform.host.ports, "outbound", small)
    async with upstream(slow) as provider:
        await platform.add_provider(
            tenant.id, "p", "openai_compatible", "m", base_url=f"{provider.url}/v1", max_retries=0, timeout_ms=200
        )
        await platform.add_provider(
            tenant.id, "q", "openai_compatible", "m", base_url=f"{provider.url}/v1", max_retries=0, timeout_ms=30_000
        )
        key = await platform.new_key(tenant.user)
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:

            async def call(provider_id: str) -> tuple[int, str, str | None]:
                body = {"model": f"{provider_id}/m", "messages": MESSAGES}
                async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
                    return answer.status, await answer.text(), answer.headers.get("retry-after")

            first = asyncio.create_task(call("q"))
            while not provider.requests:
                await asyncio.sleep(0.01)
            for status_, result, retry_after in await asyncio.gather(*[call("p") for _ in range(2 * CIRCUIT_FAILURES)]):
                assert (status_, json.loads(result)["error"]["code"]) == (503, "gateway_overloaded")
                assert retry_after == "1"
            release.set()
            assert (await first)[0] == 200
            assert (await call("p"))[0] == 200
    await small.close()


#: Fields that differ for each request.
OWN = {
    "id", "request_id", "timestamp", "latency_ms", "attempt_ms", "time_to_first_token_ms", "provider_latency_ms",
    "api_key_id",
}  # fmt: skip


def without(name: str, recorded: Any) -> Any:
    """Return an answer or record without the provider's name and the fields in `OWN`, so that two can be compared."""
    plain: dict[str, Any] = json.loads(msgspec.json.encode(msgspec.to_builtins(recorded)).replace(name.encode(), b"p"))
    if isinstance(recorded, Outcome):
        fields = dict(zip(recorded.__struct_fields__, plain[1:], strict=True))
        # The last values of an attempt are its duration and its credential.
        fields["attempts"] = [attempt[:-2] for attempt in fields["attempts"]]
        return {field: value for field, value in fields.items() if field not in OWN}
    return {field: value for field, value in plain.items() if field not in OWN}


async def ask(
    platform: RunningPlatform,
    tenant: Tenant,
    url: str,
    base: str,
    *,
    name: str = "",
    stream: bool = False,
    timeout_ms: int = 700,
) -> tuple[int, str]:
    name = name or f"p-{uuid4().hex[:8]}"
    config: dict[str, Any] = {"base_url": f"{base}/v1", "max_retries": 0, "timeout_ms": timeout_ms}
    await platform.add_provider(tenant.id, name, "openai_compatible", "m", **config)
    key = await platform.new_key(tenant.user)
    body = {"model": f"{name}/m", "messages": MESSAGES, "stream": stream}
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
        session.post(f"{url}/v1/chat/completions", json=body) as answer,
    ):
        return answer.status, await answer.text()
