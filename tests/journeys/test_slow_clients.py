"""Slow, silent and disconnected clients, and providers that break off at any byte: the memory for each is bounded, each
request that reached the gateway has one record, and no resources are left.

The worker is a real process and is called with raw sockets; the system's own lists show its resources. The environment
selects the HTTP server and client (`INGRESS`, `OUTBOUND`). The tests with providers that break off use both clients.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.support.server import GatehouseServer
from tests.support.slow_clients import MEGABYTE, WHOLE, Provider, ServerUnderTest, WorkerResources, read_answer, reset
from tests.support.upstream import Connection, upstream

pytestmark = pytest.mark.timeout(600)

HTTP_SETTINGS: Final = {name: os.environ[name] for name in ("INGRESS", "OUTBOUND") if name in os.environ}
#: seconds
BODY_TIMEOUT_SECONDS: Final = 1.0


class Patient(Provider):
    """A provider with an additional model: `silent` sends nothing until its caller disconnects."""

    waiting = 0

    async def __call__(self, connection: Connection) -> None:
        if json.loads(connection.body or b"{}").get("model") != "silent":
            return await super().__call__(connection)
        self.waiting += 1
        try:
            await connection.reader.read(1)
        finally:
            self.waiting -= 1
        raise ConnectionError


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[Patient]:
    behaviour = Patient()
    async with upstream(behaviour) as running:
        behaviour.url = running.url
        yield behaviour


@pytest.fixture(scope="module")
def servers(provider: Patient) -> Iterator[dict[str, ServerUnderTest]]:
    """Servers by their `OUTBOUND`, over one database."""
    with ExitStack() as stack:
        env = {**HTTP_SETTINGS, "BODY_TIMEOUT_SECONDS": str(BODY_TIMEOUT_SECONDS)}
        chosen = HTTP_SETTINGS.get("OUTBOUND", "lean")
        other = "aiohttp" if chosen == "lean" else "lean"
        first = stack.enter_context(GatehouseServer(env={**env, "OUTBOUND": chosen}))
        shared = {
            "DATABASE_URL": first.database_url,
            "GATEHOUSE_MASTER_KEY": (first.home / "master.key").read_text().strip(),
        }
        second = stack.enter_context(GatehouseServer(env={**env, **shared, "OUTBOUND": other}))
        first.add_provider("odd", f"{provider.url}/v1", ["whole", "large", "flood", "cut", "silent"], max_retries=0)
        key = first.new_key()
        yield {
            outbound: ServerUnderTest(server, provider, key, first.key)
            for outbound, server in ((chosen, first), (other, second))
        }


@pytest.fixture
async def server(servers: dict[str, ServerUnderTest]) -> ServerUnderTest:
    chosen = next(iter(servers.values()))
    await chosen.ready()
    return chosen


async def test_incomplete_heads_cost_little_and_delay_no_other_client(server: ServerUnderTest) -> None:
    number, before = 300, server.resources()
    async with asyncio.timeout(60):
        wires = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(number)]
        for piece in (b"POST /v1/chat/", b"completions HTTP/1.1\r\nHo", b"st: x\r\nX-A: ", *[b"a"] * 20):
            for _, writer in wires:
                writer.write(piece)
            await asyncio.sleep(0.02)
        await server.check_other_clients()
    during = server.resources()
    assert during.clients >= number
    assert (during.memory - before.memory) / number < 64 * 1024
    for index, (_, writer) in enumerate(wires):
        if index % 2:
            reset(writer)
        else:
            writer.close()
    await server.nothing_left(before)


async def test_a_slow_body_is_refused_at_its_timeout_and_recorded_once(server: ServerUnderTest) -> None:
    before = server.resources()

    async def drips(number: int) -> bytes:
        request = server.request("whole", f"drip-{number}")
        head, _, body = request.partition(b"\r\n\r\n")
        async with server.connected() as wire:
            wire.send(head + b"\r\n\r\n")
            answered = asyncio.create_task(wire.until_closed())
            for byte in body:
                if answered.done():
                    break
                wire.send(bytes([byte]))
                await asyncio.sleep(0.1)
            return await answered

    began = time.monotonic()
    answers = await asyncio.gather(*(drips(number) for number in range(40)), server.check_other_clients())
    assert time.monotonic() - began < BODY_TIMEOUT_SECONDS + 6
    assert all(answer.startswith(b"HTTP/1.1 408") for answer in answers[:-1] if answer is not None)
    assert set((await server.records("drip-", 40)).values()) == {"refused"}
    await server.nothing_left(before)


async def test_a_client_that_still_sends_after_a_refusal_gets_it_and_is_disconnected(server: ServerUnderTest) -> None:
    before = server.resources()
    head = (
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer gk_nobodys\r\nContent-Length: 99999999\r\n\r\n"
    )

    async def sends_on() -> bytes:
        async with server.connected() as wire:
            wire.send(head)
            for _ in range(10):
                wire.send(b" " * 1000)
                await asyncio.sleep(0.05)
            result = await wire.until_closed(1)
            with pytest.raises(ConnectionError):
                while True:
                    wire.send(b" ")
                    await wire.writer.drain()
                    await asyncio.sleep(0.05)
            return result

    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(sends_on() for _ in range(40)), server.check_other_clients())
    assert all(answer.startswith(b"HTTP/1.1 401") for answer in answers[:-1] if answer is not None)
    await server.nothing_left(before)


async def test_a_long_answer_reaches_a_slow_reader_completely(server: ServerUnderTest) -> None:
    before, number = server.resources(), 8

    async def reads(index: int) -> int:
        async with server.connected(buffer=4096) as wire:
            wire.send(server.request("large", f"large-{index}", more="Connection: close\r\n"))
            await asyncio.sleep(1)
            if index % 2:
                wire.reset()
                return 0
            return len((await wire.until_closed(20)).partition(b"\r\n\r\n")[2])

    sizes = await asyncio.gather(*(reads(index) for index in range(number)), server.check_other_clients())
    assert all(size is None or size == 0 or size > 4 * MEGABYTE for size in sizes)
    assert sum(bool(size) for size in sizes) == number // 2
    records = await server.records("large-", number)
    assert {records[f"large-{index}"] for index in range(0, number, 2)} == {"success"}
    assert set(records.values()) <= {"success", "cancelled"}
    await server.nothing_left(before)


async def test_a_stream_that_nobody_reads_is_held_back_at_the_provider(server: ServerUnderTest) -> None:
    # The first streams enlarge the heap of the process, so they are not measured.
    await flooded("warm", server, lambda: None)
    before = server.resources()

    def within_bounds() -> None:
        # The system's socket buffers are not memory of the gateway.
        assert server.resources().memory - before.memory < FLOODS * 4 * MEGABYTE

    await flooded("flood", server, within_bounds)
    await server.nothing_left(before)


FLOODS = 8


async def flooded(name: str, server: ServerUnderTest, check: Callable[[], None]) -> None:
    """Open streams that are not read, wait until the provider cannot send any more, then call `check`."""
    number, wires = FLOODS, []
    for index in range(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=4096)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(server.request("flood", f"{name}-{index}", streamed=True))
        wires.append((reader, writer))
    try:
        async with asyncio.timeout(60):
            while server.provider.flooding < number:
                await asyncio.sleep(0.02)
            last_count = -1
            while last_count != server.provider.flooded:
                last_count = server.provider.flooded
                await asyncio.sleep(0.5)
        check()
        await server.check_other_clients()
    finally:
        for _, writer in wires:
            reset(writer)
    async with asyncio.timeout(60):
        while server.provider.flooding:
            await asyncio.sleep(0.02)
    assert set((await server.records(f"{name}-", number)).values()) == {"cancelled"}


@pytest.mark.parametrize("model", ["silent", "flood"])
@pytest.mark.parametrize("leaves", ["says no more", "says no more at once", "resets"])
async def test_a_call_is_cancelled_when_its_client_disconnects_during_the_answer(
    server: ServerUnderTest, provider: Patient, model: str, leaves: str
) -> None:
    """A client that has closed its sending side is treated as disconnected, although it could still read."""
    before, prefix, number = server.resources(), f"half-{uuid4().hex[:8]}-", 8
    together = asyncio.Barrier(number)

    async def calls(index: int) -> None:
        async with server.connected() as wire:
            wire.send(server.request(model, f"{prefix}{index}", streamed=model == "flood"))
            if leaves != "says no more at once":
                async with asyncio.timeout(60):
                    while provider.waiting + provider.flooding < number:
                        await asyncio.sleep(0.01)
                await together.wait()
            if leaves == "resets":
                wire.reset()
            else:
                wire.writer.write_eof()
                await wire.until_closed()

    await asyncio.gather(*(calls(index) for index in range(number)))
    async with asyncio.timeout(60):
        while provider.waiting or provider.flooding:
            await asyncio.sleep(0.01)
    records = await server.records(prefix, number)
    assert set(records.values()) == {"cancelled"}
    await server.nothing_left(before)


async def test_a_connection_that_ends_before_its_request_is_complete_is_closed(server: ServerUnderTest) -> None:
    before = server.resources()
    for beginning in (b"", b"POST /v1/chat", b"GET /v1/models HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"):
        async with server.connected() as wire:
            wire.send(beginning)
            wire.writer.write_eof()
            await wire.until_closed()
    await server.nothing_left(before)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_reset_at_any_byte_of_a_request_leaves_no_resources_and_one_record_after_the_head(
    server: ServerUnderTest, streamed: bool
) -> None:
    before, prefix = server.resources(), f"reset-{uuid4().hex[:8]}-"
    whole = server.request("whole", f"{prefix}0000", streamed=streamed)
    head = whole.index(b"\r\n\r\n") + 4

    async def sends(size: int) -> None:
        request = server.request("whole", f"{prefix}{size:04}", streamed=streamed)
        async with server.connected() as wire:
            wire.send(request[:size])
            # Give the system time to deliver the bytes to the worker, because a reset may discard them.
            await asyncio.sleep(0.02)
            wire.reset()

    await in_turns(sends, range(len(whole)))
    assert_little_growth(server, before, len(whole))
    records = await server.records(prefix, len(whole) - head)
    assert min(records) == f"{prefix}{head:04}"
    assert set(records.values()) == {"cancelled"}
    await server.nothing_left(before)


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_reset_at_any_byte_of_an_answer_leaves_no_resources_and_one_record(
    server: ServerUnderTest, streamed: bool
) -> None:
    prefix, end = f"left-{uuid4().hex[:8]}-", WHOLE[streamed][-20:]
    whole: set[str] = set()

    async def reads(taken: int) -> int:
        """Read at most this many bytes, then reset the connection. Events may have separate chunks or share one."""
        request_id, read = f"{prefix}{taken:04}", b""
        async with server.connected() as wire, asyncio.timeout(60):
            wire.send(server.request("whole", request_id, streamed=streamed))
            while len(read) < taken and not read.endswith(end):
                some = await wire.reader.read(taken - len(read))
                assert some, read
                read += some
            wire.reset()
        if read.endswith(end):
            whole.add(request_id)
        return len(read)

    size = await reads(9999)
    before = server.resources()
    # A request whose client disconnected before the worker saw it has no record.
    taken = range(1, size + 40)
    await in_turns(reads, taken)
    assert_little_growth(server, before, len(taken))
    records = await server.records(prefix, len(taken) + 1)
    assert {records[request_id] for request_id in whole} == {"success"}
    assert set(records.values()) <= {"success", "cancelled"}
    await server.nothing_left(before)


@pytest.mark.parametrize("outbound", ["lean", "aiohttp"])
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_provider_that_resets_at_any_byte_is_one_error_and_one_record(
    servers: dict[str, ServerUnderTest], outbound: str, streamed: bool
) -> None:
    server, prefix, whole = servers[outbound], f"cut-{uuid4().hex[:8]}-", WHOLE[streamed]
    await server.ready()
    before = server.resources()
    answers: dict[int, tuple[int, bytes]] = {}
    head = whole.index(b"\r\n\r\n") + 4

    async def asks(size: int) -> None:
        async with server.connected() as wire:
            # Every second answer is complete, because after five failures in a row the provider would not be called.
            for cut, kind in ((size, "a"), (len(whole), "b")):
                more = "Connection: close\r\n" if kind == "b" else ""
                request_id = f"{prefix}{size:04}{kind}"
                wire.send(server.request("cut", request_id, streamed=streamed, user=str(cut), more=more))
                text = await asyncio.wait_for(read_answer(wire.reader), 5)
                if kind == "a":
                    answers[size] = text
                else:
                    assert text[0] == 200

    sizes = range(len(whole))
    await in_turns(asks, sizes, at_once=2)
    for size, (status, body) in answers.items():
        if status == 200:
            assert streamed, (size, body)
            assert size > head
        else:
            assert (status, json.loads(body)["error"]["attempts"][0]["reason"]) == (502, "connection_closed"), size
    assert_little_growth(server, before, 2 * len(sizes))
    records = await server.records(prefix, 2 * len(sizes))
    assert {records[f"{prefix}{size:04}b"] for size in sizes} == {"success"}
    # The stream is complete with its last event, even if the body is cut off after it.
    ended = whole.find(b"[DONE]") if streamed else len(whole)
    assert {records[f"{prefix}{size:04}a"] for size in sizes if size < ended} == {"error"}
    await server.nothing_left(before)
    async with asyncio.timeout(60):
        # The count includes idle connections of other tests.
        while server.resources().calls > before.calls + 2:
            await asyncio.sleep(0.05)


def assert_little_growth(server: ServerUnderTest, before: WorkerResources, exchanges: int) -> None:
    """Check that the memory has grown by less than one buffer for each exchange."""
    assert (server.resources().memory - before.memory) / exchanges < 16 * 1024


async def in_turns(one: Any, numbers: range, *, at_once: int = 8) -> None:
    remaining_numbers = iter(numbers)

    async def some() -> None:
        for number in remaining_numbers:
            await one(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(some())
