"""Public reference servers behind the platform, called by the client of the official SDK (docs/mcp.md)."""

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from tests.platform.mcp.scenarios.test_calls import CARD
from tests.platform.mcp.scenarios.test_official_sdk import connected
from tests.support.mcp_servers import BASE, approve, grant, refresh, tools
from tests.support.npm_packages import everything_server
from tests.support.platform import RunningPlatform, Tenant
from tests.support.stdio_servers import owner

REDACTED = "[CREDIT_CARD_1]"


@pytest.fixture(scope="module")
def everything() -> Iterator[str]:
    with everything_server() as url:
        yield url


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, whose message has the number of a card."""
    identity = ("-c", "user.name=Alice", "-c", "user.email=alice@example.test")
    for arguments in (("init", "-q"), (*identity, "commit", "-q", "--allow-empty", "-m", f"Charge {CARD}")):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
async def over_stdio(platform: RunningPlatform, repository: Path) -> AsyncIterator[None]:
    """The commands `time` and `git`, used by the worker."""
    arguments = {
        "time": ("mcp_server_time", "--local-timezone", "UTC"),
        "git": ("mcp_server_git", "--repository", str(repository)),
    }
    commands = {
        name: {"command": [sys.executable, "-P", "-m", *command], "organizations": ["*"]}
        for name, command in arguments.items()
    }
    with tempfile.TemporaryDirectory(prefix="gh", dir="/tmp") as home:
        async with owner(Path(home), commands) as running:
            platform.host.stdio = platform.host.ports.stdio = running.client
            yield
            platform.host.stdio = platform.host.ports.stdio = None


async def add(tenant: Tenant, name: str, *approved: str, **transport: Any) -> None:
    """Register a server, refresh it, approve some of its tools, and grant the user access."""
    answer = await tenant.admin.client.post(BASE, json={"name": name, **transport})
    assert answer.status_code == 201, answer.text
    server: dict[str, Any] = answer.json()
    await refresh(tenant, server["id"])
    rows = {row["name"]: row for row in await tools(tenant, server["id"])}
    for tool in approved:
        await approve(tenant, rows[tool])
    await grant(tenant, server, tenant.user.id)


async def test_the_time_server_answers_questions_about_time_zones(
    platform: RunningPlatform, tenant: Tenant, over_stdio: None
) -> None:
    await add(tenant, "time", "convert_time", stdio={"command": "time"})
    key = await platform.new_key(tenant.user)
    async with platform.listening() as url, connected(url, key, "auto", "/mcp/time") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["convert_time"]
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        answer = await client.call_tool("convert_time", arguments)
        assert not answer.is_error
        assert "T21:00:00+09:00" in answer.content[0].text
        # The server has this tool, but nobody has approved it.
        with pytest.raises(MCPError, match="no tool with this name"):
            await client.call_tool("get_current_time", {"timezone": "UTC"})
        # The server quotes the argument in its error. It receives the redacted value.
        answer = await client.call_tool("convert_time", {**arguments, "target_timezone": CARD})
        assert (answer.is_error, REDACTED in answer.content[0].text) == (True, True)


async def test_the_git_server_shows_a_repository_without_its_personal_data(
    platform: RunningPlatform, tenant: Tenant, over_stdio: None, repository: Path
) -> None:
    await add(tenant, "git", "git_log", "git_status", stdio={"command": "git"})
    key = await platform.new_key(tenant.user)
    async with platform.listening() as url, connected(url, key, "auto", "/mcp/git") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["git_log", "git_status"]
        answer = await client.call_tool("git_log", {"repo_path": str(repository)})
        assert not answer.is_error
        assert f"Charge {REDACTED}" in answer.content[0].text
        assert CARD not in answer.content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_everything_server_is_called_over_http(
    platform: RunningPlatform, tenant: Tenant, everything: str, mode: str
) -> None:
    await add(tenant, "everything", "echo", "get-sum", url=everything)
    key = await platform.new_key(tenant.user)
    async with platform.listening() as url, connected(url, key, mode, "/mcp/everything") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "get-sum"]
        answer = await client.call_tool("get-sum", {"a": 2, "b": 3})
        assert (answer.is_error, answer.content[0].text) == (False, "The sum of 2 and 3 is 5.")
        answer = await client.call_tool("echo", {"message": f"Charge {CARD}"})
        assert answer.content[0].text == f"Echo: Charge {REDACTED}"
