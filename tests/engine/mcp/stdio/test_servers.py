"""Stdio servers as real processes, most of them hostile (docs/mcp.md)."""

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stdio_servers import RunningOwner, command, owner, wait_until_dead

from gatehouse.engine.mcp import upstream
from gatehouse.engine.mcp.discovery import discover
from gatehouse.engine.mcp.stdio import wire
from gatehouse.engine.mcp.upstream import UpstreamFailed
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.processes import frames


async def failure(running: RunningOwner, tool: str, **fields: object) -> str:
    with pytest.raises(UpstreamFailed) as failed:
        await running.call(tool, **fields)  # type: ignore[arg-type]
    return failed.value.reason


async def test_a_server_is_started_at_its_first_use_and_keeps_its_state(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        assert await running.call("echo", {"text": "a"}) == "a"
        assert await running.call("echo", {"text": "b\u2028\n"}) == "b\u2028\n"
        assert (await running.call("state"))["texts"] == ["a", "b\u2028\n"]


async def test_answers_reach_their_callers_whatever_their_order(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(shared=True)}) as running:
        answers = await asyncio.gather(
            *(running.call("echo", {"text": str(number)}, caller=b"%d" % number) for number in range(50))
        )
        assert answers == [str(number) for number in range(50)]
        assert len((await running.call("state"))["texts"]) == 50


async def test_a_process_serves_one_organization_and_one_caller(tmp_path: Path) -> None:
    other = TenantId(new_id())
    async with owner(tmp_path, {"script": command(environment=["TOKEN"])}) as running:
        await running.call("echo", {"text": "secret"}, TOKEN="of-first")
        for fields in ({"caller": b"bob", "TOKEN": "of-first"}, {"organization": other, "TOKEN": "of-second"}):
            assert (await running.call("state", **fields))["texts"] == []  # type: ignore[arg-type]
        own = await running.call("environment", organization=other, TOKEN="of-second")
        assert own["environment"]["TOKEN"] == "of-second"
        assert "of-first" not in str(own)
        # A new value starts a new process, so no call uses an old one.
        assert (await running.call("environment", TOKEN="of-third"))["environment"]["TOKEN"] == "of-third"


async def test_a_shared_process_serves_all_callers_of_one_organization_only(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(shared=True)}) as running:
        await running.call("echo", {"text": "a"})
        assert (await running.call("state", caller=b"bob"))["texts"] == ["a"]
        assert (await running.call("state", organization=TenantId(new_id())))["texts"] == []


async def test_a_process_inherits_neither_variables_nor_descriptors(tmp_path: Path) -> None:
    commands = {"script": command(environment=["TOKEN"], fixed_environment={"REGION": "eu"})}
    async with owner(tmp_path, commands) as running:
        answer = await running.call("environment", TOKEN="t")
        folder = answer["folder"]
        assert Path(folder).parent == tmp_path / "mcp-stdio"
        # Python sets this variable itself.
        answer["environment"].pop("LC_CTYPE", None)
        assert answer["environment"] == {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder,
            "REGION": "eu", "TOKEN": "t",
        }  # fmt: skip
        assert answer["umask"] == 0o077
        # The fourth is that of the listing itself.
        assert len(await running.call("descriptors", TOKEN="t")) == 4
        for process in running.descendants():
            # The lists of processes show neither the values nor the owner's variables.
            assert "of-the-owner" not in str(process.environ())
            assert "TOKEN" not in " ".join(process.cmdline())
        assert "t" not in [value for process in running.descendants()[:1] for value in process.environ().values()]


async def test_a_process_has_the_operators_limits(tmp_path: Path) -> None:
    limited = command(memory_mib=100, cpu_seconds=7, open_files=32, file_mib=2, nice=11)
    async with owner(tmp_path, {"script": limited}) as running:
        limits = await running.call("limits")
        mib = 1024**2
        expected = {"DATA": 100 * mib, "CPU": 7, "NOFILE": 32, "FSIZE": 2 * mib, "CORE": 0}
        assert {name: limits[f"RLIMIT_{name}"] for name in expected} == {
            name: [value, value] for name, value in expected.items()
        }
        assert limits["nice"] == min(os.nice(0) + 11, 19)
        assert limits["session"]
        process = Path("/proc") / str((await running.call("state"))["pid"])
        assert (process / "oom_score_adj").read_text() == "1000\n"
        assert "NoNewPrivs:\t1\n" in (process / "status").read_text()


async def test_a_launcher_that_its_command_has_stopped_is_killed(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(idle_seconds=1)}) as running:
        await running.call("state")
        processes = running.descendants()
        (launcher,) = (process for process in processes if process.ppid() == running.process.pid)
        launcher.suspend()
        await wait_until_dead(processes)
        assert await running.call("echo", {"text": "a"}) == "a"


@pytest.mark.parametrize(
    ("tool", "reason", "logged"),
    [
        ("exit", "process_ended", "exit 3"),
        ("endless", "too_many_events", "too_many_events"),
        ("huge", "reply_too_large", "reply_too_large"),
        ("fork", "process_ended", "processes"),
    ],
)
async def test_a_server_that_breaks_a_bound_is_killed_with_all_that_it_started(
    tmp_path: Path, tool: str, reason: str, logged: str
) -> None:
    async with owner(tmp_path) as running:
        first = (await running.call("state"))["pid"]
        processes = running.descendants()
        with pytest.raises(UpstreamFailed) as failed:
            await running.call(tool)
            # The children may be counted only after the answer. Then the next call fails.
            await running.call("sleep")
        assert failed.value.reason == reason
        await wait_until_dead(processes)
        assert (await running.call("state"))["pid"] != first
        await running.wait_for_log(f'"reason": "{logged}"')


async def test_a_server_cannot_use_more_memory_than_its_limit(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(memory_mib=100)}) as running:
        assert await failure(running, "hog") == "process_ended"
        assert await running.call("echo", {"text": "a"}) == "a"


async def test_a_server_that_fails_repeatedly_is_started_with_backoff(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command("exits")}) as running:
        reasons = [await failure(running, "echo") for _ in range(20)]
        assert reasons[0] == "process_ended"
        assert reasons.count("process_failed") >= 15
        assert running.log.count("mcp_stdio.started") <= 5


async def test_standard_error_is_read_and_not_logged(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(environment=["TOKEN"])}) as running:
        assert await running.call("noise", TOKEN="s3cr3t-value") == "done"
        assert "noise" not in running.log


async def test_logged_lines_of_standard_error_are_few(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(log_stderr=True)}) as running:
        assert await running.call("noise") == "done"
        await running.wait_for_log('"text": "noise')
        assert running.log.count('"mcp_stdio.stderr"') <= 100


@pytest.mark.parametrize(
    ("fields", "values"), [({"environment": ["TOKEN"]}, {"TOKEN": "s3cr3t"}), ({"fixed_environment": {"A": "b"}}, {})]
)
async def test_lines_of_a_server_with_values_are_not_logged(
    tmp_path: Path, fields: dict[str, object], values: dict[str, str]
) -> None:
    """A value that is split or encoded could not be found in them."""
    async with owner(tmp_path, {"script": command(log_stderr=True, **fields)}) as running:
        assert await running.call("noise", **values) == "done"
        await running.wait_for_log("mcp_stdio.stderr_not_logged")
        assert "noise" not in running.log
        assert "s3cr3t" not in running.log


async def test_lines_that_answer_nothing_are_ignored(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        assert await running.call("babble") == "done"


async def test_requests_of_a_server_are_answered_by_the_gateway(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        sampling, ping = await running.call("ask")
        assert (sampling["id"], sampling["error"]["code"]) == ("q", -32601)
        assert ping == {"jsonrpc": "2.0", "id": "p", "result": {}}


async def test_a_call_whose_caller_no_longer_waits_is_cancelled(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("state")
        assert await failure(running, "sleep", timeout_ms=200) == "timeout"
        (cancelled,) = await running.call("cancelled")
        assert set(cancelled) == {"requestId", "reason"}


async def test_a_server_that_does_not_read_blocks_nobody_else(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command("deaf"), "other": command()}) as running:
        large = {"text": "x" * 2 * 1024**2}
        calls = [asyncio.create_task(failure(running, "echo", timeout_ms=2_000)) for _ in range(3)]
        assert await running.call("echo", large, name="other") == large["text"]
        assert set(await asyncio.gather(*calls)) == {"timeout"}


async def test_an_idle_server_is_ended_even_if_it_ignores_the_signal(tmp_path: Path) -> None:
    async with owner(tmp_path, {"script": command(idle_seconds=1)}) as running:
        await running.call("stubborn")
        await running.call("spawn")
        processes = running.descendants()
        assert len(processes) >= 3
        await wait_until_dead(processes)
        assert (await running.call("state"))["texts"] == []


async def test_an_organization_has_a_maximum_of_processes_and_does_not_take_those_of_others(tmp_path: Path) -> None:
    other = TenantId(new_id())
    limits = {"max_processes": 3, "max_processes_per_organization": 2}
    async with owner(tmp_path, **limits) as running:
        first = (await running.call("state", organization=other))["pid"]
        waits = [asyncio.create_task(running.call("sleep", caller=caller)) for caller in (b"a", b"b")]
        await running.wait_for_log("mcp_stdio.started", times=3)
        assert await failure(running, "state", caller=b"c") == "too_many_processes"
        waits[0].cancel()
        async with asyncio.timeout(20):
            # The organization's own idle server makes room.
            while True:
                try:
                    await running.call("state", caller=b"c")
                    break
                except UpstreamFailed as failed:
                    if failed.reason != "too_many_processes":
                        raise
                await asyncio.sleep(0.1)
        assert (await running.call("state", organization=other))["pid"] == first
        waits[1].cancel()


async def test_the_death_of_the_owner_kills_everything(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("stubborn")
        await running.call("spawn")
        processes = running.descendants()
        # the launcher, the server and its adopted child
        assert len(processes) == 3
        running.process.kill()
        await wait_until_dead(processes)
        running.restart()
        assert (await running.call("state"))["texts"] == []
        assert len(list((tmp_path / "mcp-stdio").iterdir())) == 1


async def test_the_death_of_a_launcher_kills_the_server_and_its_children(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("spawn")
        launcher, *others = running.descendants()
        launcher.kill()
        await wait_until_dead(others)
        assert (await running.call("state"))["texts"] == []


async def test_the_owner_ends_all_servers_when_it_is_stopped(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("spawn")
        processes = running.descendants()
        running.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(running.process.wait, 20)
        await wait_until_dead(processes)
        assert list((tmp_path / "mcp-stdio").iterdir()) == []


async def test_a_client_connects_again_after_a_restart_of_the_owner(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        waiting = asyncio.create_task(failure(running, "sleep"))
        await running.wait_for_log("mcp_stdio.started")
        running.process.kill()
        assert await waiting == "process_ended"
        running.restart()
        assert await running.call("echo", {"text": "a"}) == "a"


CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
try:
    peer.sendall(bytes.fromhex(sys.argv[2]))
    sys.exit(len(peer.recv(100)))
except (ConnectionResetError, BrokenPipeError):
    sys.exit(0)
"""


async def test_a_process_that_is_no_worker_is_not_served(tmp_path: Path) -> None:
    async with owner(tmp_path) as running:
        await running.call("state")
        # A worker begins with a challenge, which the owner answers.
        challenge = secrets.token_bytes(32)
        with frames.reachable(tmp_path / wire.SOCKET) as address, socket.socket(socket.AF_UNIX) as own:
            own.connect(address)
            own.sendall(challenge)
            assert own.recv(100)
        # A grandchild of the owner's parent, as a server is.
        shell = f'"{sys.executable}" -c "$1" "$2" "$3"; exit $?'
        arguments = ["sh", "-c", shell, "sh", CONNECT, str(tmp_path / wire.SOCKET), challenge.hex()]
        assert subprocess.run(arguments, timeout=60, check=False).returncode == 0
        await running.wait_for_log("mcp_stdio.stranger")


async def test_a_command_or_variable_that_is_not_offered_is_refused(tmp_path: Path) -> None:
    commands = {
        "script": command(environment=["TOKEN"]),
        "theirs": {**command(), "organizations": [str(new_id())]},
    }
    async with owner(tmp_path, commands) as running:
        assert await failure(running, "state", OTHER="a") == "command_not_offered"
        assert await failure(running, "state", name="theirs") == "command_not_offered"
        assert running.descendants() == []


@pytest.mark.parametrize("mode", ["", "mute", "exits-on-discover"])
async def test_the_tools_of_a_server_of_the_older_revision_are_discovered(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mode == "mute":
        monkeypatch.setattr("gatehouse.engine.mcp.discovery._PROBE_MS", 1_000)
    async with owner(tmp_path, {"script": command(mode)}) as running:
        discovered = await discover(running.target())
        assert (discovered.revision, discovered.server_info) == ("2025-11-25", {"name": "s", "version": "1"})
        assert "echo" in discovered.definitions


async def test_nothing_is_sent_if_the_gate_refuses(tmp_path: Path) -> None:
    class Refused(Exception):
        pass

    def gate() -> None:
        raise Refused

    async with owner(tmp_path) as running:
        target = running.target()
        await running.call("echo", {"text": "a"})
        refused = type(target)(
            record=target.record, revision=target.revision, header={}, outbound=target.outbound, gate=gate
        )
        with pytest.raises(Refused):
            await upstream.request(refused, "tools/call", {"name": "echo", "arguments": {"text": "b"}})
        assert (await running.call("state"))["texts"] == ["a"]


def test_the_owner_serves_nothing_without_commands(tmp_path: Path) -> None:
    arguments = [sys.executable, "-P", "-m", "gatehouse.engine.mcp.stdio"]
    environment = {"PATH": os.environ["PATH"], "GATEHOUSE_HOME": str(tmp_path)}
    assert subprocess.run(arguments, env=environment, timeout=60, check=False).returncode == 0
    assert list(tmp_path.iterdir()) == []
