"""Notifications of alerts: each is sent once, or not at all if the rule has no URL (docs/alerts.md,
"Notifications")."""

import asyncio
import hashlib
import hmac
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.platform.operations.alerts.conftest import SECRET, Alerts, without_secret
from tests.support.platform import Tenant
from tests.support.receiver import Receiver

from gatehouse.platform.keeper import duties
from gatehouse.platform.operations.alerts.notifying import Notifier

MET: dict[str, Any] = {"comparison": "gte", "threshold": 0}


async def saved(alerts: Alerts, receiver: Receiver, **changed: Any) -> str:
    """Save a rule with the receiver on this machine, which administration would refuse."""
    rule = await alerts.new(**{**MET, "webhook_url": "https://hooks.example.com/", **changed})
    alerts.platform.sql("UPDATE alert_rules SET webhook_url = %s WHERE id = %s", [receiver.url, rule])
    return rule


async def test_a_notification_is_signed_over_its_body(alerts: Alerts, receiver: Receiver) -> None:
    rule = await saved(alerts, receiver)
    await alerts.evaluate()
    await alerts.notify()
    (got,) = receiver.got
    assert got.json == {
        "alert_rule_id": rule, "alert_name": "Spend", "metric_type": "cost", "metric_value": 0.0, "threshold": 0.0,
        "comparison": "gte", "triggered_at": "2026-03-01T12:30:50Z",
    }  # fmt: skip
    digest = hmac.new(SECRET.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
    assert got.headers["Content-Type"] == "application/json"
    assert [record["webhook_delivered"] for record in await alerts.history(rule)] == [True]


async def test_without_a_secret_nothing_is_signed(alerts: Alerts, receiver: Receiver) -> None:
    await saved(alerts, receiver)
    await alerts.evaluate()
    alerts.tools = without_secret(alerts.tools)
    await alerts.notify()
    (got,) = receiver.got
    assert not [name for name in got.headers if "Signature" in name]


@pytest.mark.parametrize("status", [301, 302, 400, 404, 500, 503])
async def test_any_other_status_than_2xx_is_a_failure_without_a_retry(
    alerts: Alerts, receiver: Receiver, status: int
) -> None:
    receiver.otherwise = status
    rule = await saved(alerts, receiver)
    await alerts.evaluate()
    for _ in range(3):
        await alerts.notify()
    assert len(receiver.got) == 1
    assert [record["webhook_delivered"] for record in await alerts.history(rule)] == [False]


async def test_no_notification_is_sent_without_a_url_in_cooldown_or_if_disabled(
    alerts: Alerts, receiver: Receiver
) -> None:
    await alerts.new(**MET)
    await saved(alerts, receiver, enabled=False)
    await saved(alerts, receiver)
    for _ in range(3):
        await alerts.evaluate()
        await alerts.notify()
        alerts.clock.move(60)
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://localhost:1/", "the connection could not be made"),
        ("https://169.254.169.254/", "blocked by the address guard: a cloud metadata address"),
        ("https://no-such-host.invalid/", "the host name cannot be resolved"),
    ],
)
async def test_a_failed_notification_has_its_reason_in_the_history(
    alerts: Alerts, receiver: Receiver, url: str, error: str
) -> None:
    bad, good = await saved(alerts, receiver), await saved(alerts, receiver)
    alerts.platform.sql("UPDATE alert_rules SET webhook_url = %s WHERE id = %s", [url, bad])
    await alerts.evaluate()
    await alerts.notify()
    for rule, result in ((bad, (False, error)), (good, (True, None))):
        (record,) = await alerts.history(rule)
        assert (record["webhook_delivered"], record["webhook_error"]) == result
    assert alerts.tools.notifications.values == {
        ("alert", "delivered"): 1, ("alert", "blocked" if "guard" in error else "failed"): 1
    }  # fmt: skip


async def test_an_organizations_hanging_receivers_do_not_delay_others(
    alerts: Alerts, receiver: Receiver, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notifier, "max_concurrent_per_tenant", 3)
    monkeypatch.setattr(Notifier, "claimed_per_query", 3)

    async def fine(_: web.Request) -> web.StreamResponse:
        return web.Response()

    receiver.otherwise = lambda request: receiver.silence(request) if request.path == "/silent" else fine(request)
    silent = [await saved(alerts, receiver) for _ in range(6)]
    alerts.platform.sql(
        "UPDATE alert_rules SET webhook_url = webhook_url || 'silent' WHERE id = ANY(%s::uuid[])", [silent]
    )
    await alerts.evaluate()
    alerts.clock.move(1)
    alerts.tenant = other_tenant
    theirs = await saved(alerts, receiver)
    await alerts.evaluate()
    sending = Notifier(alerts.tools)
    # Three deliveries go to the silent receivers, and one to the other organization's.
    assert [await sending.take() for _ in range(3)] == [3, 1, 0]
    async with asyncio.timeout(60):
        while not (await alerts.history(theirs))[0]["webhook_delivered"]:
            await asyncio.sleep(0.05)
    for task in list(sending.running):
        task.cancel()
    await asyncio.gather(*sending.running, return_exceptions=True)


async def test_the_egress_guard_checks_the_url_when_sending(alerts: Alerts, receiver: Receiver) -> None:
    """A name that resolved elsewhere when it was saved now resolves to this machine, which the guard refuses."""
    rule = await saved(alerts, receiver)
    await alerts.evaluate()
    strict = receiver.trusted(())
    alerts.tools = msgspec.structs.replace(alerts.tools, receivers=strict)
    await alerts.notify()
    await strict.close()
    assert receiver.got == []
    assert [record["webhook_delivered"] for record in await alerts.history(rule)] == [False]


async def test_the_job_worker_evaluates_and_sends(alerts: Alerts, receiver: Receiver) -> None:
    rule = await saved(alerts, receiver)
    working = asyncio.create_task(duties.work(alerts.tools))
    try:
        (got,) = await receiver.until(1)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert got.json["alert_rule_id"] == rule


async def test_concurrent_machines_send_once(alerts: Alerts, receiver: Receiver) -> None:
    for _ in range(5):
        await saved(alerts, receiver)
    await alerts.evaluate()
    await asyncio.gather(*(alerts.notify() for _ in range(3)))
    assert len({got.json["alert_rule_id"] for got in receiver.got}) == len(receiver.got) == 5
