"""The owner of stdio servers as a process, with commands of the test (`tests.support.stdio_script`)."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from gatehouse.engine.mcp import upstream
from gatehouse.engine.mcp.messages import LEGACY
from gatehouse.engine.mcp.stdio.authentication import KEY
from gatehouse.engine.mcp.stdio.client import StdioClient, open_client
from gatehouse.engine.mcp.upstream import Target
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.policy.mcp import McpServerRecord, McpStdioRecord

SCRIPT: Final = str(Path(__file__).with_name("stdio_script.py"))
PYTHON: Final = [sys.executable, "-I", "-S"]
ORGANIZATION: Final = TenantId(new_id())


def command(*arguments: str, **fields: Any) -> dict[str, Any]:
    return {"command": [*PYTHON, SCRIPT, *arguments], "organizations": ["*"], **fields}


def commands_file(home: Path, commands: Mapping[str, Any], **fields: Any) -> Path:
    path = home / "commands.json"
    path.write_text(json.dumps({"commands": commands, **fields}))
    path.chmod(0o600)
    return path


class RunningOwner:
    """The owner's process, and a client of it."""

    def __init__(self, home: Path, commands: Mapping[str, Any], **fields: Any) -> None:
        self.home = home
        self.path = commands_file(home, commands, **fields)
        self.log_path = home / "owner.log"
        self.process = self._start()
        client = open_client(home, self.path)
        assert client is not None
        self.client: StdioClient = client
        #: a server for each command
        self.servers = {name: new_id() for name in commands}

    def _start(self) -> "subprocess.Popen[bytes]":
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "GATEHOUSE_HOME": str(self.home),
            "MCP_STDIO_COMMANDS": str(self.path),
            "OWNERS_SECRET": "of-the-owner",
        }
        with self.log_path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gatehouse.engine.mcp.stdio"],
                env=environment, stderr=log, stdin=subprocess.PIPE,
            )  # fmt: skip
        # The supervisor passes the key in the same way.
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(KEY)
        return process

    def restart(self) -> None:
        self.process.wait(30)
        self.process = self._start()

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    async def wait_for_log(self, text: str, times: int = 1) -> None:
        async with asyncio.timeout(30):
            while self.log.count(text) < times:
                await asyncio.sleep(0.05)

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def target(
        self,
        name: str = "script",
        *,
        organization: TenantId = ORGANIZATION,
        caller: bytes = b"alice",
        timeout_ms: int = 30_000,
        **environment: str,
    ) -> Target:
        record = McpServerRecord(
            id=self.servers[name], name=name, url="", revision=LEGACY, timeout_ms=timeout_ms, stdio=McpStdioRecord(name)
        )
        outbound = self.client.outbound(organization, record, environment, caller)
        return Target(record=record, revision=LEGACY, header={}, outbound=outbound)

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **fields: Any) -> Any:
        """Call a tool, and return its decoded text."""
        return await ask(self.target(**fields), tool, arguments)


async def ask(target: Target, tool: str, arguments: dict[str, Any] | None = None) -> Any:
    answer = await upstream.request(target, "tools/call", {"name": tool, "arguments": arguments or {}})
    return json.loads(answer.value["content"][0]["text"])


@asynccontextmanager
async def owner(home: Path, commands: Mapping[str, Any] | None = None, **fields: Any) -> AsyncIterator[RunningOwner]:
    running = RunningOwner(home, {"script": command()} if commands is None else commands, **fields)
    try:
        yield running
    finally:
        await running.client.stop()
        if running.process.poll() is None:
            running.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(20)
        running.process.kill()
        running.process.wait(10)


async def wait_until_dead(processes: list[psutil.Process]) -> None:
    async with asyncio.timeout(30):
        while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in _present(processes)):
            await asyncio.sleep(0.05)


def _present(processes: list[psutil.Process]) -> Iterator[psutil.Process]:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.status()
            yield process
