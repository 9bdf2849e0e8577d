"""Servers that do not start or do not finish their handshake, at a pool in the test's process."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.stdio_servers import PYTHON, SCRIPT

from gatehouse.engine.mcp.stdio import pool as pools
from gatehouse.engine.mcp.stdio import server as servers
from gatehouse.engine.mcp.stdio.commands import Command, Commands
from gatehouse.engine.mcp.stdio.pool import ServerPool
from gatehouse.engine.mcp.stdio.server import MAX_REQUESTS, ServerFailed
from gatehouse.engine.mcp.stdio.wire import EndObsolete, Prepare

StartProcess = Callable[..., Awaitable[asyncio.subprocess.Process]]


@asynccontextmanager
async def running(home: Path, monkeypatch: pytest.MonkeyPatch, **limits: int) -> AsyncIterator[ServerPool]:
    deaf = Command(command=(*PYTHON, SCRIPT, "deaf"), organizations=("*",))
    pool = ServerPool(Commands(commands={"deaf": deaf}, **limits), home / "mcp-stdio")
    # The pool would kill the test's other processes.
    monkeypatch.setattr(pool, "_kill_strangers", lambda: None)
    pool.start()
    try:
        yield pool
    finally:
        await pool.stop()


def question(server: str = "s", *, is_legacy: bool = False, caller: bytes = b"") -> Prepare:
    return Prepare(
        number=0, organization="o", server=server, command="deaf", environment={}, definition="d",
        caller=caller, is_legacy=is_legacy,
    )  # fmt: skip


async def failure(prepared: Awaitable[int]) -> str:
    with pytest.raises(ServerFailed) as failed:
        await prepared
    return failed.value.reason


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until_empty(pool: ServerPool) -> None:
    async with asyncio.timeout(20):
        while pool.numbers:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("error", [OSError(12, "no memory"), RuntimeError("can't start new thread")])
@pytest.mark.parametrize("is_process_running", [False, True])
async def test_a_server_that_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_process_running: bool
) -> None:
    start: StartProcess = asyncio.create_subprocess_exec

    async def refuse(*arguments: Any, **fields: Any) -> asyncio.subprocess.Process:
        if is_process_running:
            # The thread that waits for the process starts after the process.
            processes.append(await start(*arguments, **fields))
        raise error

    processes: list[asyncio.subprocess.Process] = []
    async with running(tmp_path, monkeypatch) as pool:
        descriptors = open_files()
        monkeypatch.setattr(servers.asyncio, "create_subprocess_exec", refuse)
        assert await failure(pool.prepare(question())) == "process_failed"
        assert pool.numbers == set()
        assert list((tmp_path / "mcp-stdio").iterdir()) == []
        for process in processes:
            # The launcher notices that its owner no longer wants it.
            await process.communicate()
        assert open_files() == descriptors
        assert await failure(pool.prepare(question())) == "process_failed"
        # Later there is a pause, after which the server starts.
        monkeypatch.setattr(servers.asyncio, "create_subprocess_exec", start)
        assert await failure(pool.prepare(question())) == "process_failed"
        await asyncio.sleep(0.6)
        assert await pool.prepare(question()) in pool.numbers


@pytest.mark.parametrize("is_ended", [True, False])
async def test_a_start_waits_for_a_server_that_is_still_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ended: bool
) -> None:
    start: StartProcess = asyncio.create_subprocess_exec
    is_free = asyncio.Event()

    async def wait(*arguments: Any, **fields: Any) -> asyncio.subprocess.Process:
        await is_free.wait()
        return await start(*arguments, **fields)

    async with running(tmp_path, monkeypatch, max_processes_per_organization=1) as pool:
        monkeypatch.setattr(servers.asyncio, "create_subprocess_exec", wait)
        first = asyncio.create_task(pool.prepare(question("first")))
        await asyncio.sleep(0.05)
        monkeypatch.setattr(pools, "_MIN_IDLE_SECONDS", 0.0)
        if not is_ended:
            # Its caller waits for it, so it makes no room.
            assert await failure(pool.prepare(question("second"))) == "too_many_processes"
            is_free.set()
            assert await first in pool.numbers
            return
        pool.end_obsolete(changed({"first": None}))
        second = asyncio.create_task(pool.prepare(question("second")))
        # A start that waits without yielding would never come back.
        await asyncio.wait_for(asyncio.sleep(0.05), 10)
        assert not second.done()
        is_free.set()
        assert await second in pool.numbers
        assert len(pool.numbers) == 1
        await asyncio.wait([first])


async def test_callers_that_wait_for_one_server_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, monkeypatch) as pool:
        waiting = [asyncio.create_task(pool.prepare(question(is_legacy=True))) for _ in range(MAX_REQUESTS)]
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            assert await failure(pool.prepare(question(is_legacy=True))) == "no_connection_free"
        # Other callers and servers have their own places.
        assert await pool.prepare(question(caller=b"bob")) in pool.numbers
        assert await pool.prepare(question("other")) in pool.numbers
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        late = asyncio.create_task(pool.prepare(question(is_legacy=True)))
        await asyncio.sleep(0.05)
        assert not late.done()
        for task in (*waiting, late):
            task.cancel()
        await asyncio.wait([*waiting, late])


async def test_a_handshake_without_an_answer_counts_as_a_failed_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_HANDSHAKE_SECONDS", 0.5)
    # The handshake fails after the time within which an end is a failed start.
    monkeypatch.setattr(pools, "MIN_UPTIME_SECONDS", 0.1)
    async with running(tmp_path, monkeypatch) as pool:
        for _ in range(2):
            assert await failure(pool.prepare(question(is_legacy=True))) == "process_failed"
            await until_empty(pool)
        # The third start has a pause before it.
        monkeypatch.setattr(pool, "_start", None)
        assert await failure(pool.prepare(question(is_legacy=True))) == "process_failed"


async def test_an_error_after_the_end_of_a_server_does_not_occupy_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> bool:
        raise RecursionError

    async with running(tmp_path, monkeypatch, max_processes=1) as pool:
        number = await pool.prepare(question())
        monkeypatch.setattr(servers, "remove_folder", fail)
        pool.end_obsolete(changed({"s": None}))
        await until_empty(pool)
        pool.end_obsolete(changed({"s": "d"}))
        assert await pool.prepare(question()) == number + 1


def changed(current: dict[str, str | None], *, is_complete: bool = False, read_at: float | None = None) -> EndObsolete:
    return EndObsolete(0, current, is_complete, time.monotonic() if read_at is None else read_at)


async def test_a_list_that_was_read_before_a_server_was_created_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker sends its first list late if it waits for the owner."""
    async with running(tmp_path, monkeypatch) as pool:
        read_at = time.monotonic()
        number = await pool.prepare(question())
        pool.end_obsolete(changed({}, is_complete=True, read_at=read_at))
        assert await pool.prepare(question()) == number
        # The next list is newer than the server.
        pool.end_obsolete(changed({}, is_complete=True))
        assert await failure(pool.prepare(question())) == "server_ended"
