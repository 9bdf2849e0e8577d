"""A request that waits for approval, with real workers: it is decided on another worker, expires, its client
disconnects, its worker is killed, the server restarts."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import httpx2
import psutil
import pytest
from tests.support.load import chat
from tests.support.server import GatehouseServer

BASE = "/api/admin/approvals"
CARD = "4111 1111 1111 1111"
WAIT_SECONDS = 8


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    """A server with two workers and a rule that requires approval for cards."""
    env = {"DLP_PROMPT_TIMEOUT_SECONDS": str(WAIT_SECONDS), "DRAIN_SECONDS": "1", "APPROVAL_BY_MACHINES": "true"}
    with GatehouseServer(workers=2, env=env) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        running.settled()
        with httpx2.Client(base_url=running.url, headers=headers, timeout=60) as client:
            flag = client.patch("/api/v1/admin/org/feature-flags/human_in_loop", json={"enabled": True})
            assert flag.status_code == 200, flag.text
            rule = {
                "detector_name": "Cards", "detector_type": "regex", "entity_type": "credit_card",
                "action_tier": "prompt",
            }  # fmt: skip
            response = client.post("/api/admin/dlp-rules/", json=rule)
            assert response.status_code == 201, response.text
        running.settled()
        yield running


@pytest.fixture
async def client(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that keeps no connection, because a kept one could belong to a stopped worker."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, limits=limits, timeout=60) as response:
        yield response


@cache
def _asker(server: GatehouseServer) -> str:
    """Return the key of the user who sends the requests."""
    return server.new_key()


class WaitingRequest:
    """A request that waits."""

    def __init__(self, server: GatehouseServer, client: httpx2.AsyncClient, **body: Any) -> None:
        self._server = server
        self.request_id = f"held-{uuid4().hex}"
        # The answer contains nothing that needs another approval.
        call = {**chat("sandbox/stream-50"), "messages": [{"role": "user", "content": f"my card is {CARD}"}], **body}
        # An administrator cannot approve their own request.
        headers = {"X-Request-Id": self.request_id, "Authorization": f"Bearer {_asker(server)}"}
        self.answer = asyncio.create_task(client.post("/v1/chat/completions", json=call, headers=headers))

    async def until(self, *statuses: str, patience: float = 60) -> str:
        """Wait until its approval has one of these statuses and return the approval's id."""
        query = "SELECT id::text, status FROM approvals WHERE request_id = %s"
        deadline = time.monotonic() + patience
        while not (rows := self._server.sql(query, [self.request_id])) or rows[0][1] not in statuses:
            assert time.monotonic() < deadline, rows
            await asyncio.sleep(0.02)
        approval: str = rows[0][0]
        return approval

    def worker(self) -> psutil.Process:
        """Return the worker that holds the request."""
        query = "SELECT n.pid FROM approvals a JOIN nodes n ON n.id = a.node WHERE a.request_id = %s"
        return psutil.Process(self._server.sql(query, [self.request_id])[0][0])


async def test_a_decision_can_be_sent_to_another_worker(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    waiting_request = WaitingRequest(server, client)
    approval = await waiting_request.until("pending")
    holder = waiting_request.worker()
    # Now only the other worker can answer.
    holder.suspend()
    try:
        decided = await client.post(f"{BASE}/{approval}/approve", json={"reason": "a test"})
        assert decided.status_code == 200, decided.text
        assert not waiting_request.answer.done()
    finally:
        holder.resume()
    answer = await waiting_request.answer
    assert (answer.status_code, answer.headers["x-dlp-action"]) == (200, "PROMPT")


async def test_an_answer_can_be_held_for_approval_too(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    waiting_request = WaitingRequest(server, client, model="sandbox/echo")
    query = "SELECT id::text FROM approvals WHERE request_id = %s AND direction = %s"
    for direction in ("input", "output"):
        async with asyncio.timeout(WAIT_SECONDS - 2):
            while not (rows := server.sql(query, [waiting_request.request_id, direction])):
                await asyncio.sleep(0.02)
        assert not waiting_request.answer.done()
        await client.post(f"{BASE}/{rows[0][0]}/approve", json={})
    answer = await waiting_request.answer
    assert answer.status_code == 200
    assert CARD in answer.text


async def test_many_requests_are_decided_independently(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    requests = [WaitingRequest(server, client) for _ in range(12)]
    for number, waiting_request in enumerate(requests):
        approval = await waiting_request.until("pending")
        verb = "deny" if number % 2 else "approve"
        assert (await client.post(f"{BASE}/{approval}/{verb}", json={})).status_code == 200
    answers = [await waiting_request.answer for waiting_request in requests]
    assert [answer.status_code for answer in answers] == [200, 403] * 6
    assert answers[1].headers["x-dlp-action"] == "CANCEL"
    assert answers[1].json()["error"]["type"] == "dlp_violation"


async def test_a_stream_sends_comments_until_it_continues(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    waiting_request = WaitingRequest(server, client, stream=True)
    approval = await waiting_request.until("pending")
    await client.post(f"{BASE}/{approval}/approve", json={})
    answer = await waiting_request.answer
    assert answer.status_code == 200
    assert answer.text.startswith(": waiting for approval")
    assert answer.text.endswith("data: [DONE]\n\n")


async def test_an_undecided_approval_expires(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    began = time.monotonic()
    waiting_request = WaitingRequest(server, client)
    answer = await waiting_request.answer
    assert WAIT_SECONDS <= time.monotonic() - began < WAIT_SECONDS + 5
    assert (answer.status_code, answer.headers["x-dlp-action"]) == (403, "CANCEL")
    approval = await waiting_request.until("expired")
    decided = await client.post(f"{BASE}/{approval}/approve", json={})
    assert (decided.status_code, decided.json()["status"]) == (409, "expired")


async def test_the_approval_of_a_disconnected_client_is_cancelled(
    server: GatehouseServer, client: httpx2.AsyncClient
) -> None:
    waiting_request = WaitingRequest(server, client)
    await waiting_request.until("pending")
    waiting_request.answer.cancel()
    await waiting_request.until("cancelled", patience=WAIT_SECONDS - 3)


async def test_a_killed_workers_requests_are_cancelled(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    waiting_request = WaitingRequest(server, client)
    approval = await waiting_request.until("pending")
    # The timeout is so long that only the next worker can end the approval.
    server.sql("UPDATE approvals SET expires_at = now() + interval '1 hour' WHERE id = %s", [approval])
    waiting_request.worker().kill()
    with pytest.raises(httpx2.HTTPError):
        await waiting_request.answer
    await waiting_request.until("cancelled", patience=60)
    decided = await client.post(f"{BASE}/{approval}/approve", json={})
    assert (decided.status_code, decided.json()["status"]) == (409, "cancelled")
    while len(server.workers) < 2:
        await asyncio.sleep(0.05)


async def test_events_of_an_approved_request_have_the_status_approved(
    server: GatehouseServer, client: httpx2.AsyncClient
) -> None:
    waiting_request = WaitingRequest(server, client)
    approval = await waiting_request.until("pending")
    await client.post(f"{BASE}/{approval}/approve", json={})
    await waiting_request.answer
    query = "SELECT status, action, severity, source FROM dlp_events WHERE request_id = %s AND direction = 'input'"
    deadline = time.monotonic() + 60
    while not (rows := server.sql(query, [waiting_request.request_id])):
        assert time.monotonic() < deadline, "no event"
        await asyncio.sleep(0.05)
    assert rows == [("approved", "prompt", "high", "organization")]


async def test_a_restart_cancels_waiting_requests(server: GatehouseServer, client: httpx2.AsyncClient) -> None:
    """This is the last test, because it restarts the server."""
    requests = [WaitingRequest(server, client), WaitingRequest(server, client, stream=True)]
    approvals = [await waiting_request.until("pending") for waiting_request in requests]
    assert server.stop() == 0
    whole, streamed = [await waiting_request.answer for waiting_request in requests]
    assert (whole.status_code, whole.headers["retry-after"]) == (503, "1")
    assert whole.json()["error"]["code"] == "worker_stopping"
    assert streamed.status_code == 200
    assert '"code":"worker_stopping"' in streamed.text
    server.start()
    for approval in approvals:
        assert (await client.get(f"{BASE}/{approval}")).json()["status"] == "cancelled"
