"""What an outpost can do with the MCP servers of its bundle: servers as processes, budgets, tools within model calls,
and servers that it cannot call. The bundle comes from a `FakePlatform`."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import psutil
import pytest
from tests.outpost.scenarios.test_serving import outpost_jwt
from tests.support.fake_platform import TENANT, FakePlatform
from tests.support.mcp_engine import server_record
from tests.support.outpost_mcp import ThreadedServer, call, code_of, listed, send, text_of
from tests.support.outpost_server import OutpostServer, until
from tests.support.stdio_servers import SCRIPT, command, commands_file

from gatehouse.engine.mcp.stdio.starting import OWNER
from gatehouse.policy.catalog import ModelRecord, ProviderConfig, ProviderRecord, TenantRecords
from gatehouse.policy.mcp import McpServerRecord, McpStdioRecord, McpUserOAuthRecord

PIDS = ("echo", "state", "environment")


@pytest.fixture(scope="module")
def platform() -> Iterator[FakePlatform]:
    with FakePlatform() as running:
        yield running


@pytest.fixture(scope="module")
def upstream() -> Iterator[ThreadedServer]:
    with ThreadedServer("add", "echo") as server:
        yield server


class _Model(BaseHTTPRequestHandler):
    """A model that calls the function `notes__echo` once, and then answers with the result."""

    bodies: ClassVar[list[dict[str, Any]]] = []
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if (last := body["messages"][-1])["role"] == "tool":
            message["content"] = f"The tool says {last['content']}"
        else:
            function = {"name": "notes__echo", "arguments": '{"city": "Oslo"}'}
            message["tool_calls"] = [{"id": "call-1", "type": "function", "function": function}]
        answer = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write no access log, because tests do not read it."""


@pytest.fixture(scope="module")
def model_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def stdio_record(name: str = "script", of: str = "script") -> McpServerRecord:
    return server_record(name, *PIDS, url="", revision="2025-11-25", stdio=McpStdioRecord(of))


@pytest.fixture
def commands(tmp_path: Path) -> str:
    return str(commands_file(tmp_path, {"script": command(shared=True)}))


def started(platform: FakePlatform, *servers: McpServerRecord, policy: Any = None, **environment: str) -> OutpostServer:
    """Return an outpost that is not started yet and that gets a bundle with these servers."""
    outpost = OutpostServer(platform, **environment)  # type: ignore[arg-type]
    fields: dict[str, Any] = {} if policy is None else {"policy": policy}
    platform.send(platform.bundle(outpost.id, 1, mcp_servers=servers, **fields))
    return outpost


def policy(model_url: str = "", **fields: Any) -> TenantRecords:
    provider = ProviderRecord(
        id="own", name="Own", kind="openai_compatible", config=ProviderConfig(base_url=model_url, max_retries=0)
    )
    model = ModelRecord(id=UUID(int=31), provider="own", model_id="m", is_default=True)
    return TenantRecords(tenant_id=TENANT, revision=0, providers=(provider,), models=(model,), **fields)


def owner_of(outpost: OutpostServer) -> psutil.Process:
    assert outpost.process is not None
    children = psutil.Process(outpost.process.pid).children()
    (owner,) = [child for child in children if OWNER in child.cmdline()]
    return owner


def test_a_server_that_needs_accounts_of_users_is_refused_and_not_listed(
    platform: FakePlatform, upstream: ThreadedServer
) -> None:
    tickets = server_record("tickets", "read", url=upstream.url, user_oauth=McpUserOAuthRecord(client_id="gatehouse"))
    with started(platform, tickets, server_record("notes", "echo", url=upstream.url)) as outpost:
        assert listed(outpost) == ["notes__echo"]
        answers = [send(outpost, "tickets", "tools/list"), call(outpost, "tickets", "read")]
        for answer in (*answers, call(outpost, "", "tickets__read")):
            assert (answer.status_code, code_of(answer)) == (503, "mcp_accounts_elsewhere")
            assert "platform" in answer.json()["error"]["message"]


def test_a_tool_that_needs_an_approval_is_refused(platform: FakePlatform, upstream: ThreadedServer) -> None:
    server = server_record("notes", "add", "echo", approved_by_person=("add",), url=upstream.url)
    before = len(upstream.calls)
    with started(platform, server, policy=policy(feature_flags={"human_in_loop": True})) as outpost:
        answer = call(outpost, "notes", "add")
        assert (answer.status_code, code_of(answer)) == (503, "approval_unavailable")
        assert len(upstream.calls) == before
        assert text_of(call(outpost, "notes", "echo")) == "{}"


def test_calls_of_tools_count_against_the_outposts_own_budget(platform: FakePlatform, upstream: ThreadedServer) -> None:
    server = server_record("notes", "echo", url=upstream.url)
    with started(platform, server, BUDGET_MONTHLY_REQUESTS="2") as outpost:
        assert text_of(call(outpost, "notes", "echo")) == "{}"
        # A call that is not sent does not count.
        assert code_of(call(outpost, "notes", "none")) == "unknown_tool"
        assert text_of(call(outpost, "notes", "echo")) == "{}"
        refused = call(outpost, "notes", "echo")
        assert (refused.status_code, code_of(refused)) == (429, "budget_exceeded")
        assert outpost.ask().status_code == 429


def test_a_call_is_sent_to_the_siem_and_written_to_the_audit_log(
    platform: FakePlatform, upstream: ThreadedServer
) -> None:
    server = server_record("notes", "echo", url=upstream.url)
    with started(platform, server, SIEM_DIRECT_TYPE="file") as outpost:
        request_id = call(outpost, "notes", "echo", city="Oslo").headers["X-Request-Id"]
        event = until(lambda: [json.loads(line) for line in lines(outpost.home / "siem", "events.jsonl")])[0]
        line = until(lambda: [json.loads(line) for line in lines(outpost.home / "outpost/audit", "*.jsonl")])[0]
    assert (event["event"]["action"], event["http"]["request"]["id"]) == ("mcp.tool_call", request_id)
    assert event["gatehouse"]["resource"] == {"type": "mcp_server", "id": str(server.id)}
    assert event["gatehouse"]["details"].items() >= {"tool": "echo", "outpost_id": str(outpost.id)}.items()
    assert line.items() >= {"type": "tool_called", "request_id": request_id, "tool": "echo"}.items()
    assert "Oslo" not in json.dumps([event, line])


def lines(folder: Path, pattern: str) -> list[str]:
    return [line for path in folder.rglob(pattern) for line in path.read_text().splitlines()]


def test_an_outposts_own_client_needs_the_scope(platform: FakePlatform, upstream: ThreadedServer) -> None:
    with started(platform, server_record("notes", "echo", url=upstream.url)) as outpost:
        assert text_of(call(outpost, "notes", "echo", outpost_jwt(scope="mcp:call"))) == "{}"
        refused = call(outpost, "notes", "echo", outpost_jwt(scope="api:read"))
        assert refused.status_code == 403
        assert 'error="insufficient_scope"' in refused.headers["WWW-Authenticate"]


def test_the_outpost_runs_tools_within_a_model_call(
    platform: FakePlatform, upstream: ThreadedServer, model_url: str
) -> None:
    server = server_record("notes", "echo", url=upstream.url)
    body = {
        "model": "own/m",
        "messages": [{"role": "user", "content": "Where?"}],
        "tools": [{"type": "mcp", "server_label": "notes", "require_approval": "never"}],
    }
    with started(platform, server, policy=policy(model_url, allowed_fields=("gateway.mcp",))) as outpost:
        with outpost.client() as client:
            answer = client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == 'The tool says {"city": "Oslo"}'
    assert upstream.calls[-1] == {"city": "Oslo"}
    assert [tool["function"]["name"] for tool in _Model.bodies[0]["tools"]] == ["notes__echo"]


def test_a_server_as_a_process_is_off_by_default(platform: FakePlatform) -> None:
    with started(platform, stdio_record()) as outpost:
        assert listed(outpost) == []
        for answer in (send(outpost, "script", "tools/list"), call(outpost, "script", "echo", text="a")):
            assert (answer.status_code, code_of(answer)) == (503, "mcp_stdio_off")
        assert outpost.process is not None
        assert psutil.Process(outpost.process.pid).children() == []


def test_the_outpost_runs_a_server_as_a_process(platform: FakePlatform, commands: str) -> None:
    secrets = {"PROVIDER_OWN_API_KEY": "sk-of-the-outpost-0001"}
    with started(
        platform, stdio_record(), stdio_record("other", "not-offered"), MCP_STDIO_COMMANDS=commands, **secrets
    ) as outpost:
        assert listed(outpost) == [f"script__{tool}" for tool in sorted(PIDS)]
        assert code_of(call(outpost, "other", "echo", text="a")) == "mcp_stdio_off"
        assert text_of(call(outpost, "script", "echo", text="a")) == '"a"'
        assert json.loads(text_of(call(outpost, "", "script__state")))["texts"] == ["a"]
        environment = json.loads(text_of(call(outpost, "script", "environment")))["environment"]
        assert set(environment) <= {"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE"}
        # The servers have the same user, and can read the environment of their owner.
        owner = owner_of(outpost)
        assert not {"OUTPOST_JWT_SECRET", "OUTPOST_ADMIN_TOKEN", "PROVIDER_OWN_API_KEY"} & set(owner.environ())
        # The owner is started again after it was killed, and its servers end with it.
        servers = owner.children(recursive=True)
        owner.kill()
        until(lambda: not any(process.is_running() for process in servers))
        assert json.loads(text_of(call(outpost, "script", "state")))["texts"] == []
        assert owner_of(outpost).pid != owner.pid
        servers = [owner_of(outpost), *owner_of(outpost).children(recursive=True)]
        assert any(SCRIPT in process.cmdline() for process in servers)
    assert not any(process.is_running() for process in servers)


def test_the_processes_of_servers_end_when_the_outpost_is_killed(platform: FakePlatform, commands: str) -> None:
    with started(platform, stdio_record(), MCP_STDIO_COMMANDS=commands) as outpost:
        assert text_of(call(outpost, "script", "echo", text="a")) == '"a"'
        owner = owner_of(outpost)
        processes = [owner, *owner.children(recursive=True)]
        assert any(SCRIPT in process.cmdline() for process in processes)
        outpost.kill()
        until(lambda: not any(is_alive(process) for process in processes))
        outpost.start()
        outpost.wait()
        assert json.loads(text_of(call(outpost, "script", "state")))["texts"] == []


def test_a_process_ends_when_its_server_is_switched_off(platform: FakePlatform, commands: str) -> None:
    server = stdio_record()
    with started(platform, server, MCP_STDIO_COMMANDS=commands) as outpost:
        assert text_of(call(outpost, "script", "echo", text="a")) == '"a"'
        processes = owner_of(outpost).children(recursive=True)
        assert any(SCRIPT in process.cmdline() for process in processes)
        platform.send(platform.bundle(outpost.id, 2, mcp_servers=[server], switched_off=[server.id]))
        until(lambda: not any(is_alive(process) for process in processes))
        assert code_of(call(outpost, "script", "echo", text="a")) == "mcp_switched_off"
        platform.send(platform.bundle(outpost.id, 3, mcp_servers=[server]))
        until(lambda: call(outpost, "script", "state").status_code == 200)
        assert json.loads(text_of(call(outpost, "script", "state")))["texts"] == []


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_unusable_file_of_commands_prevents_the_start(platform: FakePlatform, tmp_path: Path) -> None:
    path = tmp_path / "commands.json"
    path.write_text(json.dumps({"commands": {"a": {"command": ["not-absolute"], "organizations": ["*"]}}}))
    outpost = OutpostServer(platform, MCP_STDIO_COMMANDS=str(path))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="MCP_STDIO_COMMANDS"):
        outpost.start()


@pytest.mark.parametrize("value", ["no header", "Name: ", "Name: a\nb"])
def test_a_credential_that_is_no_header_prevents_the_start(platform: FakePlatform, value: str) -> None:
    outpost = OutpostServer(platform, MCP_SERVER_NOTES_HEADER=value)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="MCP_SERVER_NOTES_HEADER"):
        outpost.start()
