"""Every answer has exactly one record, even if all processes or only the keeper are killed with kill -9, or the
database is unavailable. Set `GATEHOUSE_KILL_ROUNDS=20` and `GATEHOUSE_OUTAGE_SECONDS=30` for a longer test before a
release."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import aiohttp
import pytest
from tests.support.commands import run_command
from tests.support.load import chat
from tests.support.server import OUTAGE_SECONDS, GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import JournalReader, Position
from gatehouse.platform.changes.change import DEFAULT_TENANT

ROUNDS = int(os.environ.get("GATEHOUSE_KILL_ROUNDS", "5"))
CALLERS = 12
STREAMING = "stream-200"

_OF_REQUESTS = "FROM usage_records WHERE request_id LIKE %s"


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=2) as running:
        # The stream is so long that it is still open when a signal from this process reaches the server.
        running.sql(
            "INSERT INTO model_configs (id, tenant_id, provider, model_id) VALUES (%s, %s, 'sandbox', %s)",
            [new_id(), DEFAULT_TENANT, STREAMING],
        )
        running.touch("policy", DEFAULT_TENANT)
        running.settled()
        yield running


class Callers:
    """Callers of plain and streamed requests, until they are stopped. `answered` has the requests with a complete
    answer."""

    def __init__(self, server: GatehouseServer, name: str, *, rest_seconds: float = 0.01) -> None:
        self._server = server
        self.name = name
        self._rest_seconds = rest_seconds
        self.begun = 0
        self.answered: set[str] = set()
        #: streams that have begun
        self.under_way = 0
        self.ended = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Callers":
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        self._tasks = [asyncio.create_task(self._call(stream=number % 3 == 0)) for number in range(CALLERS)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.ended = True
        await asyncio.gather(*self._tasks)
        await self._session.close()

    async def until(self, answers: int, *, patience: float = 60) -> None:
        async with asyncio.timeout(patience):
            while len(self.answered) < answers:
                await asyncio.sleep(0.005)

    async def until_streams_are_under_way(self) -> None:
        async with asyncio.timeout(60):
            while not self.under_way:
                await asyncio.sleep(0.001)

    async def _call(self, *, stream: bool) -> None:
        model = f"sandbox/{STREAMING}" if stream else "sandbox/echo"
        body = {**chat(model), "stream": stream}
        while not self.ended:
            self.begun += 1
            request_id = f"{self.name}-{self.begun}"
            headers = {"Authorization": f"Bearer {self._server.key}", "X-Request-Id": request_id}
            try:
                async with self._session.post(
                    f"{self._server.url}/v1/chat/completions", json=body, headers=headers
                ) as answer:
                    text = await (self._stream(answer) if stream else answer.read())
                    if answer.status == 200 and (not stream or text.endswith(b"data: [DONE]\n\n")):
                        self.answered.add(request_id)
                await asyncio.sleep(self._rest_seconds)
            except (aiohttp.ClientError, OSError):
                # The server was killed. The test or the round ends soon.
                await asyncio.sleep(0.02)

    async def _stream(self, answer: aiohttp.ClientResponse) -> bytes:
        begun = await answer.content.readany()
        self.under_way += 1
        try:
            return begun + await answer.content.read()
        finally:
            self.under_way -= 1


async def drained(server: GatehouseServer, *, patience: float = 60) -> None:
    """Wait until the database contains all records of the journal."""
    deadline = time.monotonic() + patience
    reader = JournalReader(server.home / "journal")
    while True:
        rows = server.sql("SELECT writer_id, segment, position FROM journal_positions")
        reader.resume({UUID(writer_id): Position(segment, position) for writer_id, segment, position in rows})
        backlog = reader.backlog()
        # The directory of a dead writer is removed after its open streams are stored too.
        if all(entry.alive and not entry.bytes for entry in backlog):
            return
        assert time.monotonic() < deadline, f"{backlog}\n{server.log()[-3000:]}"
        await asyncio.sleep(0.1)


def recorded(server: GatehouseServer) -> int:
    return int(server.sql("SELECT count(*) FROM usage_records")[0][0])


def check(server: GatehouseServer, callers: list[Callers]) -> None:
    """Check that each complete answer has exactly one usage record and one audit event, and that the chain is
    unbroken."""
    for caller in callers:
        requests = Counter(
            request_id for (request_id,) in server.sql(f"SELECT request_id {_OF_REQUESTS}", [f"{caller.name}-%"])
        )
        missing = caller.answered - set(requests)
        assert not missing, f"{len(missing)} of {len(caller.answered)} answers without a record"
        assert requests.most_common(1)[0][1] == 1
    unlike = server.sql(
        "SELECT count(*) FROM usage_records u FULL JOIN"
        " (SELECT * FROM audit_events WHERE action = 'gateway.request') a USING (tenant_id, id)"
        " WHERE u.id IS NULL OR a.id IS NULL OR u.status <> a.outcome"
    )
    assert unlike == [(0,)]
    counted = "(SELECT records FROM usage_counts UNION ALL SELECT records FROM usage_count_deltas)"
    for table in (counted, "usage_totals", "usage_hour_totals"):
        assert server.sql(f"SELECT sum(records) FROM {table} AS counts") == [(recorded(server),)]
    assert server.sql("SELECT count(*) FROM open_streams") == [(0,)]
    # With a URL, so that this process does not start the database, which the server uses.
    key = (server.home / "master.key").read_text().strip()
    environment = {**server.env, "DATABASE_URL": server.database_url, "GATEHOUSE_MASTER_KEY": key}
    verified = run_command("audit", "verify", environment=environment)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert not (server.home / "journal" / "rejected.log").exists()


async def test_kill_9_of_all_processes_under_load_neither_loses_nor_duplicates_records(server: GatehouseServer) -> None:
    chance = random.Random(11)
    rounds: list[Callers] = []
    for number in range(ROUNDS):
        async with Callers(server, f"kill{number}") as callers:
            rounds.append(callers)
            await callers.until(1)
            await asyncio.sleep(chance.random() * 0.6)
            await callers.until_streams_are_under_way()
            await asyncio.to_thread(server.kill)
            callers.ended = True
        await asyncio.to_thread(server.start)
    await drained(server)
    assert all(round_.answered for round_ in rounds)
    check(server, rounds)
    killed = "SELECT status, count(*) FROM usage_records WHERE request_id LIKE 'kill%' GROUP BY status"
    statuses = dict(server.sql(killed))
    assert set(statuses) <= {"success", "interrupted", "cancelled"}
    # There were open streams at each kill.
    assert statuses["interrupted"] >= ROUNDS


async def test_kill_9_of_the_keeper_in_the_middle_of_its_work_loses_nothing(server: GatehouseServer) -> None:
    chance = random.Random(12)
    async with Callers(server, "keeper") as callers:
        for _ in range(3):
            await callers.until(len(callers.answered) + 100)
            await asyncio.sleep(chance.random() * 0.2)
            for keeper in server.keepers:
                keeper.kill()
            while not server.keepers:
                await asyncio.sleep(0.05)
    await drained(server)
    check(server, [callers])


async def test_kill_9_of_one_worker_interrupts_only_its_streams(server: GatehouseServer) -> None:
    async with Callers(server, "worker") as callers:
        for _ in range(3):
            await callers.until(len(callers.answered) + 60)
            server.workers[0].kill()
            while len(server.workers) < 2:
                await asyncio.sleep(0.05)
    await drained(server)
    check(server, [callers])


async def test_records_of_a_database_outage_are_stored_when_it_is_back(server: GatehouseServer) -> None:
    async with Callers(server, "away", rest_seconds=0.05) as callers:
        await callers.until(100)
        await asyncio.to_thread(server.stop_database)
        await asyncio.sleep(0.2)
        before, stopped = len(callers.answered), time.monotonic()
        while time.monotonic() - stopped < max(OUTAGE_SECONDS, 5):
            await callers.until(len(callers.answered) + 10, patience=5)
        assert len(callers.answered) - before > 100
        await asyncio.to_thread(server.start_database)
        await callers.until(len(callers.answered) + 50)
    await drained(server)
    check(server, [callers])
    # The log has one line, not one for each attempt.
    assert server.log().count("drain.database_away") <= 2


async def test_an_orderly_stop_leaves_nothing_in_the_journal(server: GatehouseServer) -> None:
    async with Callers(server, "end") as callers:
        await callers.until(200)
    assert await asyncio.to_thread(server.stop) == 0
    # The database stopped with the server, so this test needs a new connection.
    await asyncio.to_thread(server.stop_database)
    assert not [path for path in (server.home / "journal").iterdir() if path.is_dir()]
    await asyncio.to_thread(server.start)
    check(server, [callers])
