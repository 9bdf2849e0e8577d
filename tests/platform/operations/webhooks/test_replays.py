"""Replays of deliveries that have no further attempt (docs/webhooks.md, Delivery guarantees)."""

import asyncio
import hashlib
import hmac
from typing import Any
from uuid import uuid4

import httpx2
import msgspec
import pytest
from tests.platform.operations.webhooks.conftest import BASE, SECRET, Hooks
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.webhooks.delivering import Deliveries

BASES = (BASE, "/api/v1/admin/webhooks/")


def replay_path(webhook_id: str, delivery_id: str, base: str = BASE) -> str:
    return f"{base}{webhook_id}/deliveries/{delivery_id}/replay"


async def replay(hooks: Hooks, webhook_id: str, delivery_id: str, **options: Any) -> httpx2.Response:
    return await hooks.tenant.admin.client.post(replay_path(webhook_id, delivery_id), **options)


async def dead_letter(hooks: Hooks, webhook_id: str, payload: Any) -> str:
    """Send an event whose three attempts fail, and turn its delivery into a dead letter. Returns its id."""
    hooks.receiver.answers.extend([500, 500, 500])
    await hooks.send(payload)
    await hooks.retry()
    await hooks.retry()
    delivery_id = (await hooks.last(webhook_id))["id"]
    hooks.platform.sql(
        "UPDATE webhook_deliveries SET status = 'dead_letter', dead_at = NULL WHERE id = %s", [delivery_id]
    )
    hooks.receiver.got.clear()
    return str(delivery_id)


@pytest.mark.parametrize("base", BASES)
async def test_a_dead_letter_is_sent_again_with_its_id_and_payload_and_a_new_signature(hooks: Hooks, base: str) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"conversation_id": "c"})
    path = replay_path(webhook_id, delivery_id, base)
    answer = await hooks.tenant.admin.client.post(path, headers={"X-API-Variant": "b"})
    assert answer.status_code == 202, answer.text
    queued = answer.json()
    assert queued == {
        "id": delivery_id, "webhook_id": webhook_id, "event_type": "new_conversation", "status": "pending",
        "attempt_count": 0, "last_attempt_at": None, "next_retry_at": None, "response_code": None,
        "error_message": None, "payload": '{"conversation_id":"c"}',
    }  # fmt: skip
    assert await hooks.last(webhook_id) == queued
    await hooks.deliver()
    (got,) = hooks.receiver.got
    assert (got.headers["X-Service-Delivery-Id"], got.json["payload"]) == (delivery_id, {"conversation_id": "c"})
    digest = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
    (delivery,) = (await hooks.detail(webhook_id, "b"))["deliveries"]
    assert (delivery["id"], delivery["status"], delivery["attempt_count"]) == (delivery_id, "delivered", 1)


@pytest.mark.parametrize(
    ("variant", "expected"),
    [("a", {"success": False, "attempt_count": 0, "last_error": None}), ("c", {"status": "pending", "attempts": 0})],
)
async def test_the_answer_has_the_deliverys_form_of_the_variant(
    hooks: Hooks, variant: str, expected: dict[str, Any]
) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    body = (await replay(hooks, webhook_id, delivery_id, headers={"X-API-Variant": variant})).json()
    assert {name: body[name] for name in expected} == expected
    assert body == await hooks.last(webhook_id, variant)


async def test_a_replay_has_three_attempts_and_can_be_replayed_again(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    hooks.receiver.otherwise = 503
    assert (await replay(hooks, webhook_id, delivery_id)).status_code == 202
    await hooks.deliver()
    for _ in range(3):
        await hooks.retry()
    assert len(hooks.receiver.got) == 3
    delivery = await hooks.last(webhook_id)
    assert (delivery["status"], delivery["attempt_count"], delivery["response_code"]) == ("failed", 3, 503)
    assert (await replay(hooks, webhook_id, delivery_id)).status_code == 202
    hooks.receiver.otherwise = 200
    await hooks.deliver()
    # The dead letter of the failed replay is no longer due.
    assert hooks.platform.sql("SELECT status, dead_at FROM webhook_deliveries WHERE id = %s", [delivery_id]) == [
        ("delivered", None)
    ]


async def test_a_replay_is_sent_after_the_deliveries_that_wait(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    await hooks.announce({"n": 2}, {"n": 3})
    await hooks.dispatch()
    assert (await replay(hooks, webhook_id, delivery_id)).status_code == 202
    await hooks.deliver()
    assert [got.json["payload"]["n"] for got in hooks.receiver.got] == [2, 3, 1]


async def test_only_the_first_of_several_concurrent_replays_succeeds(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    answers = await asyncio.gather(*(replay(hooks, webhook_id, delivery_id) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409]
    await hooks.deliver()
    assert len(hooks.receiver.got) == 1
    assert len(await platform.audit(hooks.tenant, "webhook.delivery_replayed")) == 1


async def test_deliveries_that_wait_or_succeeded_are_409(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({"n": 1})
    await hooks.dispatch()
    first = (await hooks.last(webhook_id))["id"]
    pending = await replay(hooks, webhook_id, first)
    assert (pending.status_code, pending.json()) == (
        409, {"detail": "This delivery waits for an attempt. It can be replayed once it has finally failed."}
    )  # fmt: skip
    hooks.receiver.answers.append(500)
    await hooks.deliver()
    assert (await hooks.last(webhook_id))["status"] == "failed"
    assert (await replay(hooks, webhook_id, first)).json() == pending.json()
    await hooks.retry()
    delivered = await replay(hooks, webhook_id, first)
    accepted = "The receiver has accepted this delivery. Only failed deliveries and dead letters can be replayed."
    assert (delivered.status_code, delivered.json()) == (409, {"detail": accepted})
    assert (await hooks.last(webhook_id))["status"] == "delivered"
    assert len(hooks.receiver.got) == 2


async def test_nothing_is_replayed_to_a_disabled_webhook(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    client = hooks.tenant.admin.client
    assert (await client.put(f"{BASE}{webhook_id}", json={"enabled": False})).status_code == 200
    refused = await replay(hooks, webhook_id, delivery_id)
    assert (refused.status_code, refused.json()) == (
        409, {"detail": "The webhook is disabled, so nothing is sent to it. Enable it, then replay the delivery."}
    )  # fmt: skip
    assert (await hooks.last(webhook_id))["status"] == "dead_letter"
    assert await platform.audit(hooks.tenant, "webhook.delivery_replayed") == []
    assert (await client.put(f"{BASE}{webhook_id}", json={"enabled": True})).status_code == 200
    assert (await replay(hooks, webhook_id, delivery_id)).status_code == 202


async def test_the_address_guard_also_checks_a_replay(hooks: Hooks, tools: Tools) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    assert (await replay(hooks, webhook_id, delivery_id)).status_code == 202
    hooks.deliveries = Deliveries(msgspec.structs.replace(tools, receivers=Receivers(EgressGuard())))
    await hooks.deliver()
    delivery = await hooks.last(webhook_id)
    assert (delivery["status"], delivery["error_message"]) == (
        "failed", "blocked by the address guard: a loopback address"
    )  # fmt: skip
    assert hooks.receiver.got == []


async def test_a_delivery_is_found_only_under_its_own_webhook_and_organization(
    hooks: Hooks, other_tenant: Tenant
) -> None:
    webhook_id, other_id = await hooks.new(), await hooks.new("dlp_trigger")
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    absent = {"detail": "Delivery not found. Only the last deliveries of a webhook are stored."}
    for webhook, delivery in ((webhook_id, str(uuid4())), (webhook_id, "no-id"), (other_id, delivery_id)):
        answer = await replay(hooks, webhook, delivery)
        assert (answer.status_code, answer.json()) == (404, absent)
    unknown = {"detail": "Webhook not found"}
    for base in BASES:
        for client, webhook in ((other_tenant.admin.client, webhook_id), (hooks.tenant.admin.client, str(uuid4()))):
            answer = await client.post(replay_path(webhook, delivery_id, base))
            assert (answer.status_code, answer.json()) == (404, unknown)
    assert (await hooks.last(webhook_id))["status"] == "dead_letter"


async def test_only_admins_replay_deliveries(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"n": 1})
    for base in BASES:
        path = replay_path(webhook_id, delivery_id, base)
        for client in (hooks.tenant.user.client, hooks.tenant.auditor.client):
            assert (await client.post(path)).status_code == 403
        assert (await platform.anonymous.post(path)).status_code == 401
    assert (await hooks.last(webhook_id))["status"] == "dead_letter"


async def test_a_replay_is_audited_without_the_payload(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    delivery_id = await dead_letter(hooks, webhook_id, {"conversation_id": "c"})
    assert (await replay(hooks, webhook_id, delivery_id)).status_code == 202
    (event,) = await platform.audit(hooks.tenant, "webhook.delivery_replayed")
    assert (event["resource_type"], event["resource_id"], event["actor_id"], event["details"]) == (
        "webhook",
        webhook_id,
        str(hooks.tenant.admin.id),
        {
            "delivery_id": delivery_id, "event_type": "new_conversation", "previous_status": "dead_letter",
            "attempts": 3,
        },
    )  # fmt: skip
