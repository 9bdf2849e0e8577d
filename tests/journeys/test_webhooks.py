"""Events in real processes: from a request to the receiver, also if a process is killed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import psutil
import pytest
from psycopg.types.json import Jsonb
from tests.support.receiver import Receiver, certificate
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

EVENTS = 400


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    env = {"EGRESS_ALLOWLIST": "127.0.0.0/8", "SSL_CERT_FILE": str(certificate())}
    with GatehouseServer(env=env) as running:
        assert running.key
        running.settled()
        yield running


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
async def admin(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        yield client


async def subscribe(admin: httpx2.AsyncClient, receiver: Receiver, event_type: str, path: str = "", **more: Any) -> str:
    url, secret = receiver.url + path, "what signs deliveries"
    body = {"name": f"x{path}", "url": url, "events": [event_type], "secret": secret, **more}
    answer = await admin.post("/api/admin/webhooks/", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_findings_of_a_rule_in_a_request_are_announced(
    server: GatehouseServer, admin: httpx2.AsyncClient, receiver: Receiver
) -> None:
    webhook_id = await subscribe(admin, receiver, "dlp_trigger")
    rule = {
        "detector_name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "action_tier": "redact"
    }  # fmt: skip
    rule_id = (await admin.post("/api/admin/dlp-rules/", json=rule)).json()["id"]
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "My card is 4111 1111 1111 1111."}]}
    answer = await admin.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    payload = (await receiver.until(1, patience=60))[0].json["payload"]
    ((user_id,),) = server.sql("SELECT user_id FROM api_keys WHERE id = %s", [server.key_id(server.key)])
    assert payload == {
        "request_id": answer.headers["X-Request-Id"], "user_id": str(user_id), "rule_id": rule_id,
        "entity_type": "credit_card", "action_taken": "REDACT", "direction": "input",
        "timestamp": payload["timestamp"], "findings": payload["findings"],
    }  # fmt: skip
    assert b"4111 1111" not in receiver.got[0].body
    await admin.delete(f"/api/admin/webhooks/{webhook_id}")


async def test_one_event_is_announced_per_request_with_findings(
    server: GatehouseServer, admin: httpx2.AsyncClient, receiver: Receiver
) -> None:
    """Plain and streamed calls cause one event, a scan none. Logged findings are sent only to a webhook with
    `include_logged`."""
    hooks = [
        await subscribe(admin, receiver, "dlp_trigger", "plain"),
        await subscribe(admin, receiver, "dlp_trigger", "all", include_logged=True),
    ]
    rules = [
        (await admin.post("/api/admin/dlp-rules/", json=rule)).json()["id"]
        for rule in (
            {"detector_name": "Cards of this test", "detector_type": "regex", "entity_type": "credit_card",
             "action_tier": "redact"},
            # A finding in the text that the sandbox adds to a structured answer.
            {"detector_name": "Echoes", "detector_type": "regex", "entity_type": "echo", "action_tier": "block",
             "config_json": {"pattern": '"echo"'}},
        )
    ]  # fmt: skip
    card, mail = "My cards are 4111 1111 1111 1111 and 5555 5555 5555 4444.", "Write to ada@example.com."

    async def chat(text: str, *, both: bool = False, stream: bool = False) -> str:
        body: dict[str, Any] = {"model": "sandbox/echo", "messages": [{"role": "user", "content": text}]}
        if both:
            body["response_format"] = {"type": "json_object"}
        answer = await admin.post("/v1/chat/completions", json={**body, "stream": stream})
        return answer.headers["X-Request-Id"]

    scan = await admin.post("/v1/scan", json={"text": card})
    assert scan.json()["action"] == "REDACT"
    called = [
        await chat(f"{card} {mail}", both=True, stream=True), await chat(f"{card} {mail}", both=True),
        await chat(f"{card} {mail}", stream=True), await chat(mail, stream=True), await chat(mail),
        await chat("Hello."), await chat(card),
    ]  # fmt: skip
    await receiver.until(4 + 6, patience=60)

    def got(path: str) -> dict[str, dict[str, Any]]:
        """Return the payloads by request. Requests end in any order."""
        payloads = [delivery.json["payload"] for delivery in receiver.got if delivery.path == f"/{path}"]
        by_request = {payload["request_id"]: payload for payload in payloads}
        assert len(by_request) == len(payloads)
        return by_request

    def finding_key(finding: dict[str, Any]) -> tuple[str, str, str]:
        return finding["entity_type"], finding["action_taken"], finding["direction"]

    def finding_keys(findings: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
        """Return all findings, because rules of other tests may find the same cards."""
        return set(map(finding_key, findings))

    cards, echo = ("credit_card", "REDACT", "input"), ("echo", "BLOCK", "output")
    mails = {("email", "LOG_ONLY", "input"), ("email", "LOG_ONLY", "output")}
    plain = got("plain")
    assert {request: (finding_key(result), finding_keys(result["findings"])) for request, result in plain.items()} == {
        called[0]: (echo, {cards, echo}), called[1]: (echo, {cards, echo}),
        called[2]: (cards, {cards}), called[6]: (cards, {cards}),
    }  # fmt: skip
    assert not any("logged" in payload for payload in plain.values())
    both = got("all")
    assert set(both) == {*called[:5], called[6]}
    for request in called[3:5]:
        assert finding_key(both[request]) == ("email", "LOG_ONLY", "input")
        assert both[request]["findings"] == []
    for request in called[2:5]:
        assert finding_keys(both[request]["logged"]) == mails
    for path, ids in (("webhooks", hooks), ("dlp-rules", rules)):
        for id_ in ids:
            await admin.delete(f"/api/admin/{path}/{id_}")


async def test_every_event_arrives_although_the_delivering_process_is_killed(
    server: GatehouseServer, admin: httpx2.AsyncClient, receiver: Receiver
) -> None:
    webhook_id = await subscribe(admin, receiver, "invoice_generated")
    stopping = asyncio.Event()
    killing = asyncio.create_task(_kill(server, receiver, stopping))
    for n in range(EVENTS):
        await asyncio.to_thread(_announce, server, {"n": n})
    async with asyncio.timeout(240):
        while len(_numbers(receiver)) < EVENTS:
            await asyncio.sleep(0.1)
    stopping.set()
    assert await killing >= 2, "the process was killed too rarely"
    assert sorted(_numbers(receiver)) == list(range(EVENTS))
    # In order, except for deliveries that were sent right before a kill and repeated.
    first_times = list(dict.fromkeys(got.json["payload"]["n"] for got in receiver.got))
    assert first_times == sorted(first_times)
    await admin.delete(f"/api/admin/webhooks/{webhook_id}")


def _numbers(receiver: Receiver) -> set[int]:
    return {got.json["payload"]["n"] for got in receiver.got}


def _announce(server: GatehouseServer, payload: dict[str, Any]) -> None:
    server.sql(
        "INSERT INTO outbox (id, tenant_id, event_type, payload) VALUES (%s, %s, 'invoice_generated', %s)",
        [new_id(), DEFAULT_TENANT, Jsonb(payload)],
    )


async def _kill(server: GatehouseServer, receiver: Receiver, stopping: asyncio.Event) -> int:
    """Send SIGKILL twice during a delivery."""
    kills = 0
    for item in (10, EVENTS // 2):
        while len(receiver.got) < item and not stopping.is_set():
            await asyncio.sleep(0.01)
        for keeper in server.keepers:
            with contextlib.suppress(psutil.NoSuchProcess):
                keeper.kill()
                kills += 1
    return kills
