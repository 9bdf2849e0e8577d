"""The turns of a batch: when lines are started, and that no line is lost (docs/batches.md)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import openai
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from tests.platform.batches.conftest import TIMEOUT_SECONDS, create, ended, line, occupied, results
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.platform.batches.running import statements, turn

MAINTENANCE = "/api/admin/system/maintenance"


@pytest.fixture
async def operator(platform: RunningPlatform) -> AsyncIterator[Person]:
    person = await platform.operator()
    yield person
    await person.client.post(MAINTENANCE, json={"enabled": False})


async def test_lines_wait_for_the_end_of_maintenance(
    platform: RunningPlatform,
    owner: Tenant,
    client: openai.AsyncOpenAI,
    operator: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Maintenance begins while lines run, while lines wait for a slot, and after a line was claimed."""
    claim, claims, closed = statements.claim, 0, asyncio.Event()

    async def claim_and_close(session: AsyncSession, batch_id: UUID, runner: UUID) -> Any:
        nonlocal claims
        claimed = await claim(session, batch_id, runner)
        claims += 1
        if claims == 12:
            answer = await operator.client.post(MAINTENANCE, json={"enabled": True, "drain_timeout_seconds": 0})
            assert answer.is_success, answer.text
            closed.set()
        return claimed

    monkeypatch.setattr(statements, "claim", claim_and_close)
    monkeypatch.setattr(turn, "_CLOSED_RETRY", timedelta(seconds=1))
    slow = [line(f"c{n}", model="sandbox/slow-200ms") for n in range(20)]
    batches = [await create(client, slow) for _ in range(2)]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await closed.wait()
        running = "SELECT count(*) FROM batch_lines WHERE status = 'running' AND tenant_id = %s"
        while platform.sql(running, [owner.id]) != [(0,)]:
            await asyncio.sleep(0.1)
    ((pending,),) = platform.sql(
        "SELECT count(*) FROM batch_lines WHERE status = 'pending' AND tenant_id = %s", [owner.id]
    )
    assert pending > 0
    assert (await operator.client.post(MAINTENANCE, json={"enabled": False})).is_success
    for batch in batches:
        counts = (await ended(client, batch.id)).request_counts
        assert (counts.completed, counts.failed) == (20, 0)


async def test_a_turn_starts_no_line_after_its_time(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time begins with the first line, so each turn runs at least one line."""
    monkeypatch.setattr(turn, "TURN_SECONDS", 0.0)
    capacity = platform.host.batches.capacity
    async with occupied(platform):
        created = await create(client, [line(f"c{n}") for n in range(3)])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(capacity.slots._waiters or ()) < capacity.concurrency:
                await asyncio.sleep(0.05)
    batch = await ended(client, created.id)
    assert batch.request_counts.completed == 3
    turns = "SELECT count(*) FROM jobs WHERE kind = 'batches.run' AND org_id = %s"
    assert platform.sql(turns, [owner.id]) == [(3,)]


async def test_a_line_whose_claim_was_not_confirmed_ends_as_interrupted(
    client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, claims = statements.claim, 0

    async def claim_and_disconnect(session: AsyncSession, batch_id: UUID, runner: UUID) -> Any:
        nonlocal claims
        claimed = await claim(session, batch_id, runner)
        claims += 1
        if claims == 1:
            await session.commit()
            raise psycopg.OperationalError("the connection was lost after the commit")
        return claimed

    monkeypatch.setattr(statements, "claim", claim_and_disconnect)
    batch = await ended(client, (await create(client, [line("a"), line("b")])).id)
    assert batch.status == "completed"
    assert (batch.request_counts.completed, batch.request_counts.failed) == (1, 1)
    ((_, result),) = (await results(client, batch.error_file_id)).items()
    assert result["error"]["code"] == "line_interrupted"
