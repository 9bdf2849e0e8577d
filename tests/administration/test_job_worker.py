"""Jobs on a real PostgreSQL: queued with a change, run once, retried, and taken over from killed workers."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.administration import job_worker
from gatehouse.administration.job_worker import JobWorker
from gatehouse.administration.jobs import JobFault, Jobs
from gatehouse.foundation.storage.database import Database

Runs = list[Any]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_worker, "_POLL_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(job_worker, "_MIN_RETRY_SECONDS", 0.01)


@pytest.fixture
def database(platform: RunningPlatform) -> Database:
    return platform.host.database


@pytest.fixture
def kind() -> str:
    """Return a kind of job that only this test uses, because workers run all kinds that they know."""
    return f"tests.{uuid4().hex}"


@asynccontextmanager
async def working(jobs: Jobs[Runs], runs: Runs, database: Database, **options: Any) -> AsyncIterator[JobWorker[Runs]]:
    worker = JobWorker(jobs, runs, database, slots=4, **options)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def queue(jobs: Jobs[Runs], database: Database, work: Any, org_id: UUID | None = None, **args: Any) -> UUID:
    async with database.service() as session:
        job_id = await jobs.queue(session, work, org_id, **args)
        await session.commit()
    return job_id


async def test_a_committed_job_runs_once_in_two_workers_and_a_rolled_back_one_never(
    database: Database, tenant: Tenant, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def note(runs: Runs, org_id: UUID, *, tag: str) -> None:
        runs.append((org_id, tag))

    runs: Runs = []
    async with working(jobs, runs, database), working(jobs, runs, database):
        async with database.tenant(tenant.id) as session:
            for number in range(20):
                await jobs.queue(session, note, tenant.id, tag=str(number))
            await session.commit()
        async with database.tenant(tenant.id) as session:
            await jobs.queue(session, note, tenant.id, tag="rolled back")
            await session.rollback()
        await until(lambda: len(runs) >= 20)
        await asyncio.sleep(0.3)
    assert sorted(runs, key=str) == sorted(((tenant.id, str(number)) for number in range(20)), key=str)


async def test_administration_queues_jobs_of_its_own_organization_alone(
    database: Database, tenant: Tenant, other_tenant: Tenant, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind, serial=True)
    async def note(runs: Runs, org_id: UUID) -> None: ...

    async with database.tenant(tenant.id) as session:
        first = await jobs.queue(session, note, tenant.id)
        # A job that is queued already also serves this change.
        assert await jobs.queue(session, note, tenant.id) == first
        with pytest.raises(Exception, match="row-level security"):
            await jobs.queue(session, note, other_tenant.id)


async def test_a_failed_attempt_is_retried_and_the_last_one_ends_the_job(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    jobs = Jobs[Runs](expected=(LookupError,))

    async def give_up(session: Any, org_id: UUID | None, error: Exception) -> None:
        ended.append(error)

    @jobs.job(kind, max_attempts=3, on_failure=give_up)
    async def fail(runs: Runs, org_id: None, *, secret: str) -> None:
        runs.append(secret)
        raise ValueError(secret)

    @jobs.job(f"{kind}.refused", is_final=lambda error: isinstance(error, LookupError), on_failure=give_up)
    async def refuse(runs: Runs, org_id: None) -> None:
        raise LookupError("no such thing")

    ended: list[Exception] = []
    runs: Runs = []
    failing = await queue(jobs, database, fail, secret="sk-123")
    async with working(jobs, runs, database):
        await until(lambda: ended)
        refused = await queue(jobs, database, refuse)
        await until(lambda: len(ended) == 2)
    assert runs == ["sk-123"] * 3
    assert isinstance(ended[0], JobFault)
    query = "SELECT status, attempts, error FROM jobs WHERE id = %s"
    # The text of an unexpected error may contain secrets.
    assert platform.sql(query, [failing]) == [("failed", 3, "ValueError")]
    assert platform.sql(query, [refused]) == [("failed", 1, "no such thing")]


async def test_a_job_waits_for_its_time(database: Database, kind: str) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def note(runs: Runs, org_id: None, *, tag: str) -> None:
        runs.append(tag)

    runs: Runs = []
    await queue(jobs, database, note, at=datetime.now(UTC) + timedelta(hours=1), tag="later")
    await queue(jobs, database, note, at=datetime.now(UTC) - timedelta(hours=1), tag="due")
    async with working(jobs, runs, database):
        await until(lambda: runs)
        await asyncio.sleep(0.3)
    assert runs == ["due"]


async def test_serial_jobs_of_one_organization_run_one_after_the_other(
    database: Database, tenant: Tenant, other_tenant: Tenant, kind: str
) -> None:
    jobs = Jobs[Runs]()

    async def work(runs: Runs, org_id: UUID) -> None:
        runs.append(("begin", org_id))
        await asyncio.sleep(0.2)
        runs.append(("end", org_id))

    first = jobs.job(f"{kind}.1", serial=True)(work)

    @jobs.job(f"{kind}.2", serial=True)
    async def second(runs: Runs, org_id: UUID) -> None:
        await work(runs, org_id)

    runs: Runs = []
    for org in (tenant.id, other_tenant.id):
        await queue(jobs, database, first, org)
        await queue(jobs, database, second, org)
    async with working(jobs, runs, database), working(jobs, runs, database):
        await until(lambda: len(runs) == 8)
    for org in (tenant.id, other_tenant.id):
        assert [step for step, of in runs if of == org] == ["begin", "end"] * 2
    assert [step for step, _ in runs[:2]] == ["begin", "begin"], "organizations do not wait for each other"


async def test_an_attempt_ends_at_its_time_limit(platform: RunningPlatform, database: Database, kind: str) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind, timeout_seconds=0.1, max_attempts=1)
    async def hang(runs: Runs, org_id: None) -> None:
        await asyncio.sleep(60)

    job_id = await queue(jobs, database, hang)
    query = "SELECT error FROM jobs WHERE id = %s AND status = 'failed'"
    async with working(jobs, [], database):
        await until(lambda: platform.sql(query, [job_id]) == [("not done within 0.1 s",)])


async def test_a_job_keeps_its_lease_while_it_runs(database: Database, kind: str) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def long(runs: Runs, org_id: None) -> None:
        runs.append("begin")
        await asyncio.sleep(2.5)
        runs.append("end")

    runs: Runs = []
    await queue(jobs, database, long)
    async with working(jobs, runs, database, lease_seconds=1), working(jobs, runs, database, lease_seconds=1):
        await until(lambda: "end" in runs)
        await asyncio.sleep(0.3)
    assert runs == ["begin", "end"]


async def test_a_worker_that_lost_its_lease_stops_the_job_and_changes_nothing(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def work(runs: Runs, org_id: None) -> None:
        runs.append("begin")
        try:
            await asyncio.sleep(60)
        finally:
            runs.append("cancelled")

    runs: Runs = []
    job_id = await queue(jobs, database, work)
    async with working(jobs, runs, database, lease_seconds=1):
        await until(lambda: runs)
        # Do what another worker does when it takes the job over.
        platform.sql(
            "UPDATE jobs SET attempts = 2, updated_at = now(), leased_until = now() + interval '1 hour' WHERE id = %s",
            [job_id],
        )
        await until(lambda: "cancelled" in runs)
        await asyncio.sleep(0.3)
    assert platform.sql("SELECT status, attempts FROM jobs WHERE id = %s", [job_id]) == [("running", 2)]
    platform.sql("DELETE FROM jobs WHERE id = %s", [job_id])


async def test_a_stopped_worker_gives_its_jobs_back(platform: RunningPlatform, database: Database, kind: str) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def work(runs: Runs, org_id: None, *, seconds: float) -> None:
        runs.append("begin")
        await asyncio.sleep(seconds)
        runs.append("end")

    runs: Runs = []
    short, long = [await queue(jobs, database, work, seconds=seconds) for seconds in (0.5, 60)]
    async with working(jobs, runs, database, grace_seconds=3):
        await until(lambda: len(runs) == 2)
    assert runs == ["begin", "begin", "end"]
    query = "SELECT status, attempts FROM jobs WHERE id = %s"
    assert platform.sql(query, [short]) == [("done", 1)]
    # The interrupted attempt is not counted.
    assert platform.sql(query, [long]) == [("queued", 0)]
    platform.sql("DELETE FROM jobs WHERE id = %s", [long])


PROGRAM = """
import asyncio, sys
from gatehouse.administration.job_worker import JobWorker
from gatehouse.administration.jobs import Jobs
from gatehouse.foundation.storage.database import Database

url, kind, scheduled = sys.argv[1:]
jobs = Jobs()

async def work(context, *args, **named):
    print("begin", flush=True)
    await asyncio.sleep(600)

jobs.job(kind, max_attempts=2)(work)
if scheduled == "True":
    jobs.scheduled(f"{kind}.scheduled", every_seconds=1)(work)
asyncio.run(JobWorker(jobs, None, Database(url), slots=2, lease_seconds=1).run())
"""


def start_and_kill(url: str, kind: str, *, scheduled: bool) -> None:
    """Start a worker and kill it in the middle of its job, and of a scheduled one if it has one."""
    command = [sys.executable, "-c", PROGRAM, url, kind, str(scheduled)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with worker:
        assert worker.stdout is not None
        try:
            for _ in range(1 + scheduled):
                assert worker.stdout.readline() == "begin\n"
        finally:
            os.kill(worker.pid, signal.SIGKILL)


async def test_jobs_of_a_killed_worker_are_run_by_another(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind, max_attempts=2)
    async def work(runs: Runs, org_id: None) -> None:
        runs.append("job")

    @jobs.scheduled(f"{kind}.scheduled", every_seconds=1)
    async def scheduled(runs: Runs) -> None:
        runs.append("scheduled")

    await queue(jobs, database, work)
    await asyncio.to_thread(start_and_kill, platform.installed.url, kind, scheduled=True)
    assert platform.sql("SELECT count(*) FROM jobs WHERE kind LIKE %s AND status = 'running'", [f"{kind}%"]) == [(2,)]
    runs: Runs = []
    async with working(jobs, runs, database):
        await until(lambda: {"job", "scheduled"} <= set(runs))
    assert runs.count("job") == 1
    platform.sql("DELETE FROM jobs WHERE kind LIKE %s", [f"{kind}%"])


async def test_a_job_that_kills_its_workers_ends_after_its_attempts(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind, max_attempts=2)
    async def work(runs: Runs, org_id: None) -> None:
        runs.append("run")

    job_id = await queue(jobs, database, work)
    for _ in range(2):
        await asyncio.to_thread(start_and_kill, platform.installed.url, kind, scheduled=False)
    runs: Runs = []
    query = "SELECT status FROM jobs WHERE id = %s"
    async with working(jobs, runs, database):
        await until(lambda: platform.sql(query, [job_id]) == [("failed",)])
    assert runs == []
    platform.sql("DELETE FROM jobs WHERE kind LIKE %s", [f"{kind}%"])


async def test_a_schedule_runs_once_for_each_time_across_workers_and_does_not_overlap(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.scheduled(kind, every_seconds=1)
    async def tick(runs: Runs) -> None:
        runs.append(("begin", time.time()))
        await asyncio.sleep(0.3)
        runs.append(("end", time.time()))
        raise RuntimeError("a failed run does not end the schedule")

    runs: Runs = []
    async with working(jobs, runs, database), working(jobs, runs, database), working(jobs, runs, database):
        await until(lambda: len(runs) >= 8)
        # There is one row for all runs and workers, with the result of the last run.
        query = "SELECT status, error FROM jobs WHERE kind = %s"
        await until(lambda: platform.sql(query, [kind]) == [("queued", "RuntimeError")])
    steps = [step for step, _ in runs]
    assert steps[:8] == ["begin", "end"] * 4
    seconds = [int(at) for step, at in runs if step == "begin"]
    assert len(set(seconds)) == len(seconds), "a scheduled time had two runs"
    platform.sql("DELETE FROM jobs WHERE kind = %s", [kind])


async def test_a_missed_time_is_caught_up_once(platform: RunningPlatform, database: Database, kind: str) -> None:
    jobs = Jobs[Runs]()

    @jobs.scheduled(kind, every_seconds=86_400, offset_seconds=3_600)
    async def daily(runs: Runs) -> None:
        runs.append("run")

    runs: Runs = []
    async with working(jobs, runs, database):
        await until(lambda: platform.sql("SELECT 1 FROM jobs WHERE kind = %s", [kind]))
        await asyncio.sleep(0.2)
    assert runs == []
    platform.sql("UPDATE jobs SET run_at = now() - interval '3 days' WHERE kind = %s", [kind])
    async with working(jobs, runs, database):
        await until(lambda: runs)
        await asyncio.sleep(0.3)
    assert runs == ["run"]
    ((at,),) = platform.sql("SELECT run_at FROM jobs WHERE kind = %s", [kind])
    assert (at.timestamp() % 86_400, at > datetime.now(UTC)) == (3_600, True)
    platform.sql("DELETE FROM jobs WHERE kind = %s", [kind])


async def test_jobs_of_unknown_kinds_are_left_to_others(platform: RunningPlatform, database: Database) -> None:
    """A newer version that runs at the same time may queue kinds that this version does not have."""
    job_id = uuid4()
    platform.sql("INSERT INTO jobs (id, kind, lane) VALUES (%s, 'tests.unknown', %s)", [job_id, str(job_id)])
    async with working(Jobs[Runs](), [], database):
        await asyncio.sleep(0.3)
    assert platform.sql("SELECT status FROM jobs WHERE id = %s", [job_id]) == [("queued",)]
    platform.sql("DELETE FROM jobs WHERE id = %s", [job_id])


async def test_a_job_that_does_not_accept_its_arguments_fails_like_any_other(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    """A newer version that runs at the same time may queue a job with an argument that this version does not have."""
    newer, older = Jobs[Runs](), Jobs[Runs]()

    @newer.job(kind)
    async def with_argument(runs: Runs, org_id: None, *, reason: str) -> None: ...

    @older.job(kind, max_attempts=2)
    async def without(runs: Runs, org_id: None) -> None: ...

    job_id = await queue(newer, database, with_argument, reason="new")
    query = "SELECT status, attempts, error FROM jobs WHERE id = %s"
    async with working(older, [], database):
        await until(lambda: platform.sql(query, [job_id]) == [("failed", 2, "TypeError")])


async def test_a_lease_that_was_lost_is_not_found_again_in_a_later_run(
    platform: RunningPlatform, database: Database, kind: str
) -> None:
    """Each run of a schedule begins with the first attempt."""
    jobs = Jobs[Runs]()

    @jobs.scheduled(kind, every_seconds=86_400)
    async def work(runs: Runs) -> None:
        runs.append("begin")
        try:
            await asyncio.sleep(60)
        finally:
            runs.append("cancelled")

    runs: Runs = []
    query = "UPDATE jobs SET run_at = now() WHERE kind = %s RETURNING 1"
    async with working(jobs, runs, database, lease_seconds=4):
        await until(lambda: platform.sql(query, [kind]))
        await until(lambda: runs)
        # Other workers took it over, ended it, and began the next run.
        platform.sql("UPDATE jobs SET attempts = 2, updated_at = now() WHERE kind = %s", [kind])
        platform.sql("UPDATE jobs SET status = 'queued', attempts = 0, updated_at = now() WHERE kind = %s", [kind])
        platform.sql(
            "UPDATE jobs SET status = 'running', attempts = 1, updated_at = now(),"
            " leased_until = now() + interval '1 hour' WHERE kind = %s",
            [kind],
        )
        await until(lambda: "cancelled" in runs, 5)
        await asyncio.sleep(0.3)
    query = "SELECT status, attempts FROM jobs WHERE kind = %s"
    assert platform.sql(query, [kind]) == [("running", 1)]
    platform.sql("DELETE FROM jobs WHERE kind = %s", [kind])


async def test_jobs_that_use_all_connections_keep_their_leases(database: Database, kind: str) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def query(runs: Runs, org_id: None) -> None:
        async with database.service() as session:
            runs.append("begin")
            await session.execute(text("SELECT pg_sleep(3)"))
        runs.append("end")

    runs: Runs = []
    for _ in range(4):
        await queue(jobs, database, query)
    async with working(jobs, runs, database, lease_seconds=1):
        await until(lambda: runs.count("end") == 4)
    assert runs == ["begin"] * 4 + ["end"] * 4


async def test_an_organization_with_many_jobs_does_not_delay_others(
    platform: RunningPlatform, database: Database, tenant: Tenant, other_tenant: Tenant, kind: str
) -> None:
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def long(runs: Runs, org_id: UUID | None) -> None:
        runs.append(org_id)
        await asyncio.sleep(60 if org_id == tenant.id else 0)

    @jobs.scheduled(f"{kind}.scheduled", every_seconds=1)
    async def scheduled(runs: Runs) -> None:
        runs.append("scheduled")

    runs: Runs = []
    for _ in range(8):
        await queue(jobs, database, long, tenant.id)
    async with working(jobs, runs, database):
        await until(lambda: tenant.id in runs)
        await queue(jobs, database, long, other_tenant.id)
        await until(lambda: {other_tenant.id, "scheduled"} <= set(runs), 5)
    platform.sql("DELETE FROM jobs WHERE kind LIKE %s", [f"{kind}%"])


async def test_a_worker_does_not_take_over_its_own_jobs_after_a_pause(database: Database, kind: str) -> None:
    """The worker is paused for longer than the lease, like a suspended virtual machine."""
    jobs = Jobs[Runs]()

    @jobs.job(kind)
    async def work(runs: Runs, org_id: None) -> None:
        runs.append("begin")
        time.sleep(1.5)
        await asyncio.sleep(0.2)
        runs.append("end")

    runs: Runs = []
    await queue(jobs, database, work)
    async with working(jobs, runs, database, lease_seconds=1):
        await until(lambda: "end" in runs)
        await asyncio.sleep(0.3)
    assert runs == ["begin", "end"]


async def test_a_retry_while_the_same_job_is_queued_again_ends_the_first_at_once(
    platform: RunningPlatform, database: Database, tenant: Tenant, kind: str
) -> None:
    jobs = Jobs[Runs](expected=(LookupError,))
    queueing = asyncio.Event()

    @jobs.job(kind, serial=True)
    async def fail(runs: Runs, org_id: UUID) -> None:
        runs.append("run")
        if len(runs) == 1:
            await queueing.wait()
            raise LookupError

    runs: Runs = []
    await queue(jobs, database, fail, tenant.id)
    async with working(jobs, runs, database):
        await until(lambda: runs)
        async with database.tenant(tenant.id) as session:
            await jobs.queue(session, fail, tenant.id)
            queueing.set()
            # The retry waits for this transaction.
            await asyncio.sleep(0.5)
            await session.commit()
        await until(lambda: len(runs) == 2, 5)
        statuses = "SELECT status FROM jobs WHERE kind = %s"
        await until(lambda: platform.sql(statuses, [kind]) == [("done",), ("done",)])


async def test_a_serial_job_keeps_its_earlier_time_and_has_no_arguments(
    platform: RunningPlatform, database: Database, tenant: Tenant, kind: str
) -> None:
    """A queued job serves every change that queues it again, so arguments of the second would be lost."""
    jobs = Jobs[Runs]()

    @jobs.job(kind, serial=True)
    async def work(runs: Runs, org_id: UUID, *, tag: str = "") -> None: ...

    async with database.tenant(tenant.id) as session:
        await jobs.queue(session, work, tenant.id)
        await jobs.queue(session, work, tenant.id, at=datetime.now(UTC) + timedelta(hours=1))
        with pytest.raises(TypeError, match="serial"):
            await jobs.queue(session, work, tenant.id, tag="lost")
        await session.commit()
    assert platform.sql("SELECT run_at <= now() FROM jobs WHERE kind = %s", [kind]) == [(True,)]
    platform.sql("DELETE FROM jobs WHERE kind = %s", [kind])
