"""Deliveries of events to receivers: signature, order, retries, dead letters (docs/webhooks.md)."""

import asyncio
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web
from sqlalchemy.exc import OperationalError
from tests.platform.operations.webhooks.conftest import BASE, SECRET, Hooks
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes import outbox
from gatehouse.platform.operations.webhooks import delivering, queue
from gatehouse.platform.operations.webhooks.delivering import Deliveries
from gatehouse.platform.operations.webhooks.listening import enqueue
from gatehouse.platform.operations.webhooks.queue import RETRY_DELAYS_SECONDS, Lag


async def test_a_delivery_has_this_envelope_and_these_headers(hooks: Hooks) -> None:
    webhook_id = await hooks.new(path="hook")
    before = datetime.now(UTC)
    await hooks.send({"conversation_id": "c"})
    (got,) = hooks.receiver.got
    assert got.path == "/hook"
    timestamp = got.json["timestamp"]
    assert got.json == {
        "event_type": "new_conversation", "payload": {"conversation_id": "c"}, "timestamp": timestamp
    }  # fmt: skip
    assert timestamp.endswith("Z")
    assert before <= datetime.fromisoformat(timestamp) <= datetime.now(UTC)
    digest = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
    assert got.headers["X-Webhook-Signature"] == digest
    assert got.headers["X-Service-Webhook-Id"] == webhook_id
    assert got.headers["X-Service-Delivery-Id"] == (await hooks.last(webhook_id))["id"]
    assert got.headers["Content-Type"] == "application/json"


async def test_only_enabled_webhooks_with_the_event_type_get_it(hooks: Hooks, other_tenant: Tenant) -> None:
    await hooks.new("dlp_trigger", path="other-event")
    await hooks.new("dlp_trigger", "new_conversation", path="both")
    await hooks.new(enabled=False, path="disabled")
    theirs = {"name": "x", "url": hooks.receiver.url + "theirs", "events": ["new_conversation"], "secret": SECRET}
    assert (await other_tenant.admin.client.post(BASE, json=theirs)).status_code == 201
    await hooks.send({})
    assert [got.path for got in hooks.receiver.got] == ["/both"]


async def test_a_webhook_gets_its_events_in_order(hooks: Hooks) -> None:
    await hooks.new()
    await hooks.send(*({"n": n} for n in range(120)))
    assert [got.json["payload"]["n"] for got in hooks.receiver.got] == list(range(120))


def test_retries_wait_one_and_then_five_seconds() -> None:
    assert RETRY_DELAYS_SECONDS == (1, 5)


async def test_a_failed_attempt_is_retried_after_the_delays(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    hooks.receiver.answers.extend([500, 503])
    await hooks.send({})
    for attempts, status, seconds in ((1, 500, queue.RETRY_DELAYS_SECONDS[0]), (2, 503, queue.RETRY_DELAYS_SECONDS[1])):
        delivery = await hooks.last(webhook_id)
        assert (delivery["status"], delivery["attempt_count"], delivery["response_code"]) == (
            "failed",
            attempts,
            status,
        )
        wait = datetime.fromisoformat(delivery["next_retry_at"]) - datetime.fromisoformat(delivery["last_attempt_at"])
        assert timedelta(seconds=seconds) <= wait < timedelta(seconds=seconds + 1)
        await hooks.deliver()
        assert len(hooks.receiver.got) == attempts, "it waits"
        await hooks.retry()
    delivery = await hooks.last(webhook_id)
    assert (delivery["status"], delivery["attempt_count"], delivery["next_retry_at"]) == ("delivered", 3, None)
    assert (delivery["response_code"], delivery["error_message"]) == (200, None)
    assert len({got.headers["X-Service-Delivery-Id"] for got in hooks.receiver.got}) == 1


async def test_after_the_third_failure_the_delivery_becomes_a_dead_letter_30_seconds_later(
    hooks: Hooks, tools: Tools
) -> None:
    webhook_id = await hooks.new()
    hooks.receiver.otherwise = 500
    await hooks.send({})
    await hooks.retry()
    await hooks.retry()
    await hooks.retry()
    assert len(hooks.receiver.got) == 3
    delivery = await hooks.last(webhook_id)
    assert (delivery["status"], delivery["attempt_count"], delivery["next_retry_at"]) == ("failed", 3, None)
    ((wait,),) = hooks.platform.sql(
        "SELECT dead_at - last_attempt_at FROM webhook_deliveries WHERE id = %s", [delivery["id"]]
    )
    assert timedelta(seconds=30) <= wait < timedelta(seconds=31)
    await delivering.mark_dead_letters(tools)
    assert (await hooks.last(webhook_id))["status"] == "failed"
    hooks.platform.sql("UPDATE webhook_deliveries SET dead_at = now() WHERE id = %s", [delivery["id"]])
    await delivering.mark_dead_letters(tools)
    assert (await hooks.last(webhook_id))["status"] == "dead_letter"


async def test_later_events_wait_until_the_last_retry(hooks: Hooks) -> None:
    await hooks.new()
    hooks.receiver.answers.extend([500, 500, 500])
    await hooks.send({"n": 1}, {"n": 2})
    await hooks.retry()
    assert [got.json["payload"]["n"] for got in hooks.receiver.got] == [1, 1]
    await hooks.retry()
    assert [got.json["payload"]["n"] for got in hooks.receiver.got] == [1, 1, 1, 2]


async def test_a_dead_receiver_does_not_delay_others(hooks: Hooks) -> None:
    await hooks.new(path="dead")
    await hooks.new(path="living")
    hooks.receiver.otherwise = lambda request: hooks.receiver.silence(request) if request.path == "/dead" else _fine()
    await hooks.announce(*({"n": n} for n in range(30)))
    await hooks.dispatch()
    turns = asyncio.create_task(hooks.deliver())
    async with asyncio.timeout(60):
        while sum(got.path == "/living" for got in hooks.receiver.got) < 30:
            await asyncio.sleep(0.02)
    assert sum(got.path == "/dead" for got in hooks.receiver.got) == 1
    turns.cancel()
    await asyncio.gather(turns, return_exceptions=True)


async def _fine() -> web.StreamResponse:
    return web.Response()


async def test_a_redirect_is_a_failure_and_is_named(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    hooks.receiver.answers.append(web.Response(status=302, headers={"Location": "http://169.254.169.254/"}))
    await hooks.send({})
    delivery = await hooks.last(webhook_id, "c")
    assert (delivery["status"], delivery["response_status"]) == ("pending", 302)
    assert "redirect" in delivery["last_error"]
    assert len(hooks.receiver.got) == 1


async def test_a_url_that_became_blocked_fails_without_a_connection(
    hooks: Hooks, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await hooks.new()
    strict = Receivers(EgressGuard())
    monkeypatch.setattr(tools.receivers, "post", strict.post)
    await hooks.send({})
    await strict.close()
    for variant, error in (("b", "error_message"), ("c", "last_error")):
        delivery = await hooks.last(webhook_id, variant)
        assert (delivery["status"], delivery[error]) == ("failed", "blocked by the address guard: a loopback address")
    delivery = await hooks.last(webhook_id, "a")
    assert (delivery["success"], delivery["last_error"]) == (False, "blocked by the address guard: a loopback address")
    assert (await hooks.last(webhook_id))["next_retry_at"] is None
    await hooks.retry()
    assert hooks.receiver.got == []


async def test_the_variants_show_a_delivery_in_their_own_format(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    await hooks.send({"n": 1})
    a, b, c = [await hooks.last(webhook_id, variant) for variant in "abc"]
    common = {"id": a["id"], "webhook_id": webhook_id, "event_type": "new_conversation"}
    assert a == {
        **common, "payload": {"n": 1}, "response_status": 200, "response_body": "answered 200", "success": True,
        "attempt_count": 1, "last_error": None, "delivered_at": a["delivered_at"], "created_at": a["created_at"],
    }  # fmt: skip
    assert a["delivered_at"] > a["created_at"]
    assert b == {
        **common, "status": "delivered", "attempt_count": 1, "last_attempt_at": a["delivered_at"],
        "next_retry_at": None, "response_code": 200, "error_message": None, "payload": '{"n":1}',
    }  # fmt: skip
    assert c == {
        **common, "payload": {"n": 1}, "status": "delivered", "attempts": 1, "last_error": None,
        "response_status": 200, "created_at": a["created_at"],
    }  # fmt: skip


async def test_a_detail_has_the_last_20_deliveries_the_newest_first(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    await hooks.send(*({"n": n} for n in range(25)))
    recent_deliveries = (await hooks.detail(webhook_id))["recent_deliveries"]
    assert [item["payload"]["n"] for item in recent_deliveries] == list(range(24, 4, -1))


async def test_in_variant_b_a_payload_is_cut_after_10000_characters(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    await hooks.send({"text": "x" * 20_000})
    assert len((await hooks.last(webhook_id))["payload"]) == 10_000
    assert len(hooks.receiver.got[0].json["payload"]["text"]) == 20_000


async def test_waiting_deliveries_are_not_sent_once_the_webhook_is_disabled(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({})
    await hooks.dispatch()
    await hooks.tenant.admin.client.put(f"{BASE}{webhook_id}", json={"enabled": False})
    await hooks.deliver()
    delivery = await hooks.last(webhook_id)
    assert (delivery["status"], delivery["attempt_count"], delivery["error_message"]) == (
        "failed",
        0,
        "the webhook was disabled",
    )
    await hooks.tenant.admin.client.put(f"{BASE}{webhook_id}", json={"enabled": True})
    await hooks.send({"n": 2})
    assert [got.json["payload"] for got in hooks.receiver.got] == [{"n": 2}]


async def test_a_deleted_organization_sends_no_events(hooks: Hooks, platform: RunningPlatform) -> None:
    await hooks.new()
    await hooks.announce({"n": 1})
    await hooks.dispatch()
    platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [hooks.tenant.id])
    await hooks.send({"n": 2})
    assert hooks.receiver.got == []
    assert platform.sql("SELECT status, payload FROM webhook_deliveries WHERE tenant_id = %s", [hooks.tenant.id]) == [
        ("failed", {"n": 1})
    ]


async def test_waiting_deliveries_use_the_new_url_and_secret(hooks: Hooks) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({})
    await hooks.dispatch()
    body = {"url": hooks.receiver.url + "new", "secret": "another secret of its own"}
    await hooks.tenant.admin.client.put(f"{BASE}{webhook_id}", json=body)
    await hooks.deliver()
    (got,) = hooks.receiver.got
    digest = hmac.new(b"another secret of its own", got.body, hashlib.sha256).hexdigest()
    assert (got.path, got.headers["X-Webhook-Signature"]) == ("/new", digest)


async def test_events_that_arrive_at_the_end_of_a_turn_are_sent(hooks: Hooks) -> None:
    """The receiver announces further events while it answers. They are delivered whenever they arrive."""
    await hooks.new()
    pending = [{"n": n} for n in range(1, 12)]

    async def more(_: web.Request) -> web.StreamResponse:
        if pending:
            await hooks.announce(pending.pop(0))
            await hooks.dispatch()
        return web.Response()

    hooks.receiver.otherwise = more
    await hooks.send({"n": 0})
    assert [got.json["payload"]["n"] for got in hooks.receiver.got] == list(range(12))


async def test_two_processes_share_the_webhooks_and_none_is_sent_twice(hooks: Hooks, tools: Tools) -> None:
    for n in range(8):
        await hooks.new(path=str(n))
    await hooks.announce(*({"n": n} for n in range(20)))
    await hooks.dispatch()
    second = Hooks(hooks.platform, hooks.tenant, hooks.receiver)
    second.deliveries = Deliveries(tools)
    await asyncio.gather(hooks.deliver(), second.deliver())
    assert len(hooks.receiver.got) == 160
    for path in {got.path for got in hooks.receiver.got}:
        sent = [got.json["payload"]["n"] for got in hooks.receiver.got if got.path == path]
        assert sent == list(range(20))


async def test_the_turn_of_a_dead_process_is_taken_over_after_its_lease(
    hooks: Hooks, platform: RunningPlatform
) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({})
    await hooks.dispatch()
    async with platform.host.database.at_once() as connection:
        (dead,) = await queue.take(connection, 10)
    await hooks.deliver()
    assert hooks.receiver.got == []
    await hooks.retry()
    assert len(hooks.receiver.got) == 1
    # A process that continues late stores nothing and sends nothing.
    async with platform.host.database.service() as session:
        assert await queue.advance(session, dead) is None
    assert (await hooks.last(webhook_id))["attempt_count"] == 1


async def test_the_lease_of_a_turn_is_renewed_while_its_process_lives(
    hooks: Hooks, platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer takes longer than the lease. No other process sends meanwhile."""
    monkeypatch.setattr(queue, "LEASE_SECONDS", 3.0)
    monkeypatch.setattr(delivering, "_EXTEND_INTERVAL_SECONDS", 0.2)

    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    hooks.receiver.otherwise = slow
    webhook_id = await hooks.new()
    await hooks.announce({})
    await hooks.dispatch()
    running = asyncio.create_task(hooks.deliveries.run())
    await hooks.receiver.until(1)
    for _ in range(8):
        await asyncio.sleep(0.5)
        async with platform.host.database.at_once() as connection:
            assert await queue.take(connection, 10) == []
    async with asyncio.timeout(60):
        while (await hooks.last(webhook_id))["status"] != "delivered":
            await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(hooks.receiver.got) == 1


async def test_an_expired_turn_cannot_be_renewed(hooks: Hooks, platform: RunningPlatform) -> None:
    await hooks.new()
    await hooks.announce({})
    await hooks.dispatch()
    async with platform.host.database.at_once() as connection:
        (turn,) = await queue.take(connection, 10)
    async with platform.host.database.service() as session:
        await queue.advance(session, turn, go_on=False)
        due = platform.sql("SELECT due_at FROM webhook_queues WHERE webhook_id = %s", [turn.webhook_id])
        for again in (queue.extend, queue.give_back):
            await again(session, [turn])
            assert platform.sql("SELECT due_at FROM webhook_queues WHERE webhook_id = %s", [turn.webhook_id]) == due


async def test_an_aborted_turn_is_available_at_once(
    hooks: Hooks, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deliveries, "stop_timeout_seconds", 0.1)
    hooks.receiver.answers.append(hooks.receiver.silence)
    await hooks.new()
    await hooks.announce({})
    await hooks.dispatch()
    running = asyncio.create_task(hooks.deliveries.run())
    await hooks.receiver.until(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    hooks.deliveries = Deliveries(tools)
    await hooks.deliver()
    assert len({got.headers["X-Service-Delivery-Id"] for got in hooks.receiver.got}) == 1
    assert len(hooks.receiver.got) == 2


async def test_results_of_deliveries_are_counted(hooks: Hooks, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks.platform.sql("UPDATE webhook_deliveries SET dead_at = NULL")
    await hooks.new()
    hooks.receiver.answers.extend([200, 500, 500, 500])
    await hooks.send({}, {})
    await hooks.retry()
    await hooks.retry()
    hooks.platform.sql("UPDATE webhook_deliveries SET dead_at = now() WHERE dead_at IS NOT NULL")
    await delivering.mark_dead_letters(tools)
    strict = Receivers(EgressGuard())
    monkeypatch.setattr(tools.receivers, "post", strict.post)
    await hooks.send({})
    await strict.close()
    assert tools.notifications.values == {
        ("webhook", "delivered"): 1, ("webhook", "failed"): 3, ("webhook", "dead_letter"): 1, ("webhook", "blocked"): 1,
    }  # fmt: skip


async def test_the_age_of_the_oldest_event_is_exported(hooks: Hooks, tools: Tools) -> None:
    lag = Lag()
    await hooks.new()
    await lag.measure(tools)
    assert lag.seconds == 0
    await hooks.announce({})
    hooks.platform.sql("UPDATE outbox SET created_at = now() - interval '50 seconds' WHERE dispatched_at IS NULL")
    await lag.measure(tools)
    assert 50 <= lag.seconds < 60
    await hooks.dispatch()
    hooks.platform.sql("UPDATE webhook_queues SET due_at = now() - interval '30 seconds' WHERE due_at IS NOT NULL")
    await lag.measure(tools)
    assert 30 <= lag.seconds < 40
    await hooks.deliver()
    await lag.measure(tools)
    assert lag.seconds == 0


async def test_one_organizations_dead_receivers_do_not_use_up_all_turns(
    hooks: Hooks, platform: RunningPlatform, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deliveries, "max_concurrent_per_tenant", 2)
    monkeypatch.setattr(Deliveries, "claimed_per_query", 2)

    hooks.receiver.otherwise = lambda request: (
        hooks.receiver.silence(request) if request.path.startswith("/dead") else _fine()
    )
    for n in range(6):
        await hooks.new(path=f"dead/{n}")
    theirs = Hooks(platform, other_tenant, hooks.receiver)
    await theirs.new(path="living")
    await hooks.announce({})
    await theirs.announce({})
    await hooks.dispatch()
    begun = [await hooks.deliveries.take() for _ in range(3)]
    assert begun == [2, 1, 0]
    async with asyncio.timeout(60):
        while "/living" not in {got.path for got in hooks.receiver.got}:
            await asyncio.sleep(0.02)
    for turn in list(hooks.deliveries.running):
        turn.cancel()
    await asyncio.gather(*hooks.deliveries.running, return_exceptions=True)


async def test_a_removed_webhooks_deliveries_are_deleted(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({}, {})
    await hooks.dispatch()
    assert (await hooks.tenant.admin.client.delete(f"{BASE}{webhook_id}")).status_code == 204
    await hooks.deliver()
    assert hooks.receiver.got == []
    for table in ("webhook_deliveries", "webhook_queues"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE webhook_id = %s", [webhook_id]) == [(0,)]


async def test_the_last_20_deliveries_are_kept_for_a_month(
    hooks: Hooks, platform: RunningPlatform, tools: Tools
) -> None:
    webhook_id = await hooks.new()
    await hooks.send(*({"n": n} for n in range(30)))
    await delivering.prune(tools)
    kept = platform.sql("SELECT payload FROM webhook_deliveries WHERE webhook_id = %s ORDER BY position", [webhook_id])
    assert [payload["n"] for (payload,) in kept] == list(range(10, 30))
    platform.sql(
        "UPDATE webhook_deliveries SET created_at = now() - interval '31 days' WHERE webhook_id = %s"
        " AND payload->>'n' < '15'",
        [webhook_id],
    )
    await delivering.prune(tools)
    assert len((await hooks.detail(webhook_id))["recent_deliveries"]) == 15


async def test_pruning_keeps_waiting_deliveries(hooks: Hooks, platform: RunningPlatform, tools: Tools) -> None:
    webhook_id = await hooks.new()
    await hooks.announce(*({"n": n} for n in range(30)))
    await hooks.dispatch()
    platform.sql(
        "UPDATE webhook_deliveries SET created_at = now() - interval '31 days' WHERE webhook_id = %s", [webhook_id]
    )
    await delivering.prune(tools)
    await hooks.deliver()
    assert len(hooks.receiver.got) == 30


async def test_beyond_the_limit_the_oldest_waiting_deliveries_are_abandoned(
    hooks: Hooks, platform: RunningPlatform, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "MAX_WAITING_DELIVERIES_PER_WEBHOOK", 3)
    webhook_id = await hooks.new()
    await hooks.announce(*({"n": n} for n in range(5)))
    await hooks.dispatch()
    await delivering.prune(tools)
    await hooks.deliver()
    assert [got.json["payload"]["n"] for got in hooks.receiver.got] == [2, 3, 4]
    dead_letters = (await hooks.detail(webhook_id, "b"))["deliveries"][3:]
    assert [(item["status"], item["next_retry_at"]) for item in dead_letters] == [("dead_letter", None)] * 2
    assert dead_letters[0]["error_message"] == "given up: the receiver is too far behind"


async def test_at_shutdown_the_running_attempt_is_stored_and_the_turn_released(
    hooks: Hooks, platform: RunningPlatform
) -> None:
    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.5)
        return web.Response()

    hooks.receiver.otherwise = slow
    await hooks.new()
    await hooks.announce({"n": 1}, {"n": 2})
    await hooks.dispatch()
    running = asyncio.create_task(hooks.deliveries.run())
    await hooks.receiver.until(1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    rows = platform.sql(
        "SELECT status FROM webhook_deliveries WHERE tenant_id = %s ORDER BY position", [hooks.tenant.id]
    )
    assert rows == [("delivered",), ("pending",)]
    due = "SELECT due_at <= now() FROM webhook_queues WHERE tenant_id = %s"
    assert platform.sql(due, [hooks.tenant.id]) == [(True,)]


async def test_an_unreadable_secret_is_reported_and_nothing_is_sent_unsigned(
    hooks: Hooks, platform: RunningPlatform
) -> None:
    webhook_id = await hooks.new()
    platform.sql("UPDATE webhooks SET sealed_secret = 'v1.gone.x' WHERE id = %s", [webhook_id])
    await hooks.send({})
    assert "set the secret again" in (await hooks.last(webhook_id))["error_message"]
    assert hooks.receiver.got == []


# the outbox ----------------------------------------------------------------------------------------------------------


async def test_a_change_that_is_rolled_back_announces_nothing(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    with platform._owner.transaction(force_rollback=True):
        platform.sql(
            "INSERT INTO outbox (id, tenant_id, event_type, payload) VALUES (gen_random_uuid(), %s, 'new_conversation',"
            " '{}')",
            [hooks.tenant.id],
        )
    await hooks.dispatch()
    assert (await hooks.detail(webhook_id))["recent_deliveries"] == []


async def test_an_event_is_dispatched_once_and_by_one_reader_at_a_time(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({}, {}, {})
    database = platform.host.database
    counts = await asyncio.gather(*(outbox.dispatch(database, (enqueue,)) for _ in range(4)))
    assert sorted(counts) == [0, 0, 0, 3]
    assert len((await hooks.detail(webhook_id))["recent_deliveries"]) == 3


async def test_an_event_of_a_failed_listener_is_dispatched_again_once_the_database_is_back(
    hooks: Hooks, platform: RunningPlatform
) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({})

    async def away(*_: Any) -> None:
        raise OperationalError("", None, Exception())

    with pytest.raises(OperationalError):
        await outbox.dispatch(platform.host.database, (enqueue, away))
    assert (await hooks.detail(webhook_id))["recent_deliveries"] == []
    await hooks.dispatch()
    assert len((await hooks.detail(webhook_id))["recent_deliveries"]) == 1


async def test_a_failing_listener_misses_only_that_event(hooks: Hooks, platform: RunningPlatform) -> None:
    webhook_id = await hooks.new()
    await hooks.announce({"n": 1}, {"bad": True}, {"n": 2})
    heard: list[UUID] = []

    async def picky(_: Any, events: Any) -> None:
        if any("bad" in event.payload for event in events):
            raise ValueError
        heard.extend(event.id for event in events)

    await outbox.dispatch(platform.host.database, (picky, enqueue))
    assert len(heard) == 2
    assert len((await hooks.detail(webhook_id))["recent_deliveries"]) == 3
