"""The ends of stdio servers by an administrator, by limits of what they store, and by the pool; and who may send."""

import asyncio
import os
import secrets
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.stdio_servers import RunningOwner, command, owner, wait_until_dead

from gatehouse.engine.mcp.stdio import pool as pools
from gatehouse.engine.mcp.stdio import wire
from gatehouse.engine.mcp.stdio.authentication import KEY, NotAuthenticated, prove_worker
from gatehouse.engine.mcp.stdio.client import ProcessFailed, open_client
from gatehouse.engine.mcp.stdio.commands import Command, Commands
from gatehouse.engine.mcp.stdio.pool import ServerPool
from gatehouse.engine.mcp.stdio.server import ServerFailed
from gatehouse.engine.mcp.upstream import UpstreamFailed
from gatehouse.foundation.processes import frames
from gatehouse.policy.mcp import McpStdioRecord

DEFINITION = McpStdioRecord("script").definition


async def failure(running: RunningOwner, tool: str, **fields: object) -> str:
    with pytest.raises(UpstreamFailed) as failed:
        await running.call(tool, **fields)  # type: ignore[arg-type]
    return failed.value.reason


@pytest.mark.parametrize("current", [None, "another definition"])
async def test_a_server_that_is_switched_off_or_changed_ends_at_once(tmp_path: Path, current: str | None) -> None:
    async with owner(tmp_path, {"script": command(), "other": command()}) as running:
        await running.call("stubborn")
        await running.call("spawn")
        other = (await running.call("state", name="other"))["pid"]
        processes = [process for process in running.descendants() if other not in _family(process.pid)]
        assert len(processes) >= 3
        waiting = asyncio.create_task(failure(running, "sleep"))
        # Another worker, whose call needs a process of its own.
        second = open_client(tmp_path, running.path)
        assert second is not None
        await running.wait_for_log("mcp_stdio.started", times=2)
        await asyncio.sleep(0.2)
        running.client.end_obsolete({str(running.servers["script"]): current}, False)
        assert await waiting == "server_ended"
        await wait_until_dead(processes)
        # A worker that does not know of the change yet cannot start the server again.
        assert await failure(running, "state") == "server_ended"
        assert await failure(running, "state", caller=b"bob") == "server_ended"
        assert (await running.call("state", name="other"))["pid"] == other
        running.client.end_obsolete({str(running.servers["script"]): DEFINITION}, False)
        assert (await running.call("state"))["texts"] == []
        await second.stop()


def _family(pid: int) -> set[int]:
    """The process, its parent and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid, *map(int, children)}


async def test_a_server_that_is_absent_from_a_complete_list_ends(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(), "other": command()}) as running:
        await running.call("state")
        other = (await running.call("state", name="other"))["pid"]
        current: dict[str, str | None] = {str(running.servers["other"]): McpStdioRecord("other").definition}
        running.client.end_obsolete(current, True)
        assert await failure(running, "state") == "server_ended"
        assert (await running.call("state", name="other"))["pid"] == other


async def test_a_server_that_is_starting_when_it_is_switched_off_serves_nothing(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("state", caller=b"bob")
        starting = asyncio.create_task(failure(running, "state"))
        await asyncio.sleep(0)
        running.client.end_obsolete({str(running.servers["script"]): None}, False)
        assert await starting == "server_ended"
        async with asyncio.timeout(20):
            while running.descendants():
                await asyncio.sleep(0.05)


@pytest.mark.parametrize(("files", "size"), [(30, 2**20), (21_000, 1)], ids=["bytes", "number"])
async def test_a_folder_has_a_maximum_size(tmp_path: Path, files: int, size: int) -> None:
    limited = command(file_mib=2, folder_mib=20)
    async with owner(tmp_path, {"script": limited}) as running:
        await running.call("write", {"files": 5, "bytes": 2**20})
        processes = running.descendants()
        with pytest.raises(UpstreamFailed) as failed:
            await running.call("write", {"files": files, "bytes": size})
            await running.call("sleep")
        assert failed.value.reason == "process_ended"
        await wait_until_dead(processes)
        await running.wait_for_log('"reason": "folder"')
        assert [folder for folder in (tmp_path / "mcp-stdio").iterdir() if (folder / "file-0").exists()] == []


async def test_shared_memory_counts_as_memory_and_is_removed(tmp_path: Path) -> None:
    path = Path("/dev/shm") / f"gatehouse-test-{uuid4().hex}"
    kept = path.with_name(f"{path.name}-kept")
    try:
        async with owner(tmp_path, {"script": command(memory_mib=100, file_mib=200)}) as running:
            with pytest.raises(UpstreamFailed) as failed:
                await running.call("share", {"path": str(path), "mib": 120})
                await running.call("sleep")
            assert failed.value.reason == "process_ended"
            await running.wait_for_log('"reason": "memory"')
            async with asyncio.timeout(20):
                while path.exists():
                    await asyncio.sleep(0.05)
            # Shared memory within the limit is removed at the end too. A file of another process is not, even if the
            # command writes to it.
            kept.write_bytes(b"x")
            await running.call("share", {"path": str(kept), "mib": 1})
            await running.call("share", {"path": str(path), "mib": 1})
            assert path.exists()
            running.client.end_obsolete({}, True)
            async with asyncio.timeout(20):
                while path.exists():
                    await asyncio.sleep(0.05)
            assert kept.exists()
    finally:
        path.unlink(missing_ok=True)
        kept.unlink(missing_ok=True)


async def test_memory_without_a_name_counts_as_memory(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(memory_mib=100, file_mib=200)}) as running:
        with pytest.raises(UpstreamFailed) as failed:
            await running.call("share-deleted", {"mib": 120})
            await running.call("sleep")
        assert failed.value.reason == "process_ended"
        await running.wait_for_log('"reason": "memory"')


async def test_an_organizations_least_recently_used_server_makes_room(tmp_path: Path) -> None:
    limits = {"max_processes": 3, "max_processes_per_organization": 2}
    async with owner(tmp_path, **limits) as running:
        first = (await running.call("state", caller=b"a"))["pid"]
        second = (await running.call("state", caller=b"b"))["pid"]
        await running.call("echo", {"text": "a"}, caller=b"a")
        # Servers that were used in the last second are not ended.
        await asyncio.sleep(1.2)
        assert (await running.call("state", caller=b"a"))["pid"] == first
        await running.call("state", caller=b"c")
        assert (await running.call("state", caller=b"a"))["pid"] == first
        assert not Path(f"/proc/{second}").exists()


async def test_the_pool_remembers_a_limited_number_of_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_MAX_PLACES", 3)
    # The program ends at once.
    ends = Command(command=("/bin/true",), organizations=("*",))
    pool = ServerPool(Commands(commands={"ends": ends}), tmp_path / "mcp-stdio")
    # The pool would kill the test's other processes.
    monkeypatch.setattr(pool, "_kill_strangers", lambda: None)
    pool.start()
    for number in range(6):
        question = wire.Prepare(
            number=0, organization="o", server=str(number), command="ends", environment={}, definition="d",
            caller=b"", is_legacy=False,
        )  # fmt: skip
        await pool.prepare(question)
        async with asyncio.timeout(20):
            while pool.numbers:
                await asyncio.sleep(0.02)
    assert len(pool._places) == 3
    # A forgotten server has no pause before its next start.
    await pool.stop()
    with pytest.raises(ServerFailed):
        await pool.send(1, b"{}")


async def test_a_worker_sends_only_to_servers_that_were_prepared_for_it(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("echo", {"text": "a"})
        stranger = open_client(tmp_path, running.path)
        assert stranger is not None
        for process in (1, 2):
            with pytest.raises(ProcessFailed) as failed:
                await stranger.ask(wire.Send(number=0, process=process, body=b'{"jsonrpc": "2.0", "method": "x"}'))
            assert failed.value.reason == "not_running"
        await stranger.stop()


async def test_a_child_of_the_supervisor_without_the_key_is_refused(tmp_path: Path) -> None:
    """This process is the parent of the owner, as the supervisor is."""
    async with owner(tmp_path) as running:
        await running.call("state")
        with frames.reachable(tmp_path / wire.SOCKET) as address:
            reader, writer = await asyncio.open_unix_connection(address)
        with pytest.raises(NotAuthenticated):
            await prove_worker(secrets.token_bytes(32), reader, writer)
        # A stranger that knows the protocol, but not the key, gets nothing.
        writer.write(secrets.token_bytes(32) + wire.framed(wire.Send(number=1, process=1, body=b"{}")))
        try:
            received = await reader.read(100)
        except ConnectionError:
            received = b""
        assert received == b""
        writer.close()
        await running.wait_for_log("mcp_stdio.stranger")
        # No process shows the key to servers.
        for process in Path("/proc").glob("[0-9]*"):
            if process.name != str(os.getpid()):
                for name in ("environ", "cmdline"):
                    try:
                        assert KEY not in (process / name).read_bytes()
                    except OSError:
                        continue


async def test_a_worker_sends_nothing_to_a_process_that_pretends_to_be_the_owner(tmp_path: Path) -> None:
    received = bytearray()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.readexactly(32))
        writer.write(secrets.token_bytes(64))
        received.extend(await reader.read(1_000))
        writer.close()

    async with owner(tmp_path) as running:
        running.process.kill()
        running.process.wait(10)
        listener = frames.private_listener(tmp_path / wire.SOCKET)
        impostor = await asyncio.start_unix_server(pretend, sock=listener)
        assert await failure(running, "echo", timeout_ms=1_000) == "timeout"
        # Only challenges were sent.
        assert len(received) % 32 == 0
        assert received
        assert b"alice" not in received
        impostor.close()
