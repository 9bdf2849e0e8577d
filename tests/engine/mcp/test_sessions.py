"""Sessions at servers of the older revision: a fair bound between organizations, and pauses of the process."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.support.engine import EngineHarness
from tests.support.mcp_engine import received, server_record

from gatehouse.engine.mcp import sessions
from gatehouse.engine.mcp.messages import LEGACY
from gatehouse.engine.mcp.sessions import UpstreamSessions
from gatehouse.foundation.outbound import OutboundRequest

INITIALIZED = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": LEGACY, "capabilities": {}}}


class Upstream:
    """A server that begins a session for each `initialize`, and counts them."""

    def __init__(self) -> None:
        self.begun = 0

    async def send(self, request: OutboundRequest) -> Any:
        if request.before_first_byte is not None:
            request.before_first_byte()
        self.begun += b'"initialize"' in request.body
        return _Reply(f"session-{self.begun}")

    async def close(self) -> None: ...


class _Reply:
    def __init__(self, session_id: str) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json", "mcp-session-id": session_id}

    async def read(self, limit: int) -> bytes:
        return json.dumps(INITIALIZED).encode()

    async def close(self) -> None: ...


def caller(organization: int, user: int) -> Any:
    fields = ("api_key_id", "client_id", "grant_id", "session_id")
    person = SimpleNamespace(kind="session", user_id=UUID(int=user), **dict.fromkeys(fields))
    return SimpleNamespace(policy=SimpleNamespace(tenant_id=UUID(int=organization)), caller=person)


async def test_an_organization_does_not_make_the_sessions_of_a_smaller_one_be_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "_MAX_SESSIONS", 10)
    upstream, harness = Upstream(), EngineHarness()
    record = server_record("weather", "echo", revision=LEGACY)
    kept = UpstreamSessions(harness.ports)
    target = sessions.Target(record=record, revision=LEGACY, header={}, outbound=upstream)
    small = [await kept.kept(caller(1, user), target) for user in range(3)]
    for user in range(50):
        await kept.kept(caller(2, user), target)
    begun = upstream.begun
    assert [await kept.kept(caller(1, user), target) for user in range(3)] == small
    # The large organization keeps its newest sessions.
    for user in range(43, 50):
        await kept.kept(caller(2, user), target)
    assert upstream.begun == begun
    await kept.kept(caller(2, 42), target)
    assert upstream.begun == begun + 1
    # Several organizations with the same number of sessions share the bound.
    for user in range(3, 9):
        await kept.kept(caller(1, user), target)
    begun = upstream.begun
    for user in range(4, 9):
        await kept.kept(caller(1, user), target)
    assert upstream.begun == begun


def knowing(*answers: bool) -> Callable[[], bool]:
    left = list(answers)
    return lambda: left.pop(0) if left else True


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(("answers", "status"), [((False, True, True), 200), ((False,) * 50, 503)])
async def test_sessions_begin_and_end_after_a_pause_of_the_process_as_calls_are_made(
    method: str, answers: tuple[bool, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = EngineHarness()
    harness.mcp_servers = (server_record("weather", "echo", revision=LEGACY),)
    synchronized: list[bool] = []

    async def synchronize() -> None:
        synchronized.append(True)

    raw = json.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": LEGACY}}
    ).encode()

    async def ask(method: str, **headers: str) -> Any:
        async def read() -> bytes:
            return raw

        request = received(harness, raw, "/mcp/weather", method, **headers)
        harness.outbound.script = [(200, [json.dumps(INITIALIZED).encode()], {"mcp-session-id": "s"}), (202, [b""])]
        return await harness.engine.tools.answer(request, read, lambda: None)

    headers = {}
    if method == "DELETE":
        begun = await ask("POST")
        headers = {"mcp_session_id": begun.headers["Mcp-Session-Id"]}
    monkeypatch.setattr(harness, "in_touch", synchronize)
    monkeypatch.setattr(harness, "up_to_date", knowing(*answers))
    harness.outbound.sent.clear()
    answer = await ask(method, **headers)
    assert answer.status == status
    assert len(synchronized) == (2 if status == 200 else 5)
