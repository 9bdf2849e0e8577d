"""What receivers are told, once, and where nobody is told (reference 3, Alerts, Notification)."""

import asyncio
import hashlib
import hmac
from typing import Any

import msgspec
import pytest
from tests.platform.operations.alerts.conftest import SECRET, Alerts, without_secret
from tests.support.receiver import Receiver

from gatehouse.platform.keeper import work
from gatehouse.platform.operations.alerts import notifying

MET: dict[str, Any] = {"comparison": "gte", "threshold": 0}


async def saved(alerts: Alerts, receiver: Receiver, **changed: Any) -> str:
    """A rule that leads to the receiver on this machine, which administration here would not take."""
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
    await notifying.send_due(without_secret(alerts.tools))
    (got,) = receiver.got
    assert not [name for name in got.headers if "Signature" in name]


@pytest.mark.parametrize("status", [301, 302, 400, 404, 500, 503])
async def test_any_answer_but_2xx_is_no_delivery_and_is_not_repeated(
    alerts: Alerts, receiver: Receiver, status: int
) -> None:
    receiver.otherwise = status
    rule = await saved(alerts, receiver)
    await alerts.evaluate()
    for _ in range(3):
        await alerts.notify()
    assert len(receiver.got) == 1
    assert [record["webhook_delivered"] for record in await alerts.history(rule)] == [False]


async def test_nobody_is_told_without_a_url_in_cooldown_or_when_disabled(alerts: Alerts, receiver: Receiver) -> None:
    await alerts.new(**MET)
    await saved(alerts, receiver, enabled=False)
    await saved(alerts, receiver)
    for _ in range(3):
        await alerts.evaluate()
        await alerts.notify()
        alerts.clock.move(60)
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    "url", ["https://localhost:1/", "https://127.0.0.1/", "https://169.254.169.254/", "https://no-such-host.invalid/"]
)
async def test_where_nothing_may_be_sent_or_nobody_listens_nothing_is_delivered(
    alerts: Alerts, receiver: Receiver, url: str
) -> None:
    """One of them that is bad keeps the other waiting for nothing."""
    bad, good = await saved(alerts, receiver), await saved(alerts, receiver)
    alerts.platform.sql("UPDATE alert_rules SET webhook_url = %s WHERE id = %s", [url, bad])
    await alerts.evaluate()
    await alerts.notify()
    for rule, delivered in ((bad, False), (good, True)):
        assert [record["webhook_delivered"] for record in await alerts.history(rule)] == [delivered]


async def test_the_guard_judges_when_it_sends(alerts: Alerts, receiver: Receiver) -> None:
    """A name that led elsewhere when it was saved: here it leads to this machine, which the guard does not let pass."""
    rule = await saved(alerts, receiver)
    await alerts.evaluate()
    strict = receiver.trusted(())
    await notifying.send_due(msgspec.structs.replace(alerts.tools, receivers=strict))
    await strict.close()
    assert receiver.got == []
    assert [record["webhook_delivered"] for record in await alerts.history(rule)] == [False]


async def test_whoever_works_on_jobs_evaluates_and_sends(alerts: Alerts, receiver: Receiver) -> None:
    rule = await saved(alerts, receiver)
    working = asyncio.create_task(work.work(alerts.tools))
    try:
        (got,) = await receiver.until(1)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert got.json["alert_rule_id"] == rule


async def test_machines_that_look_at_once_send_once(alerts: Alerts, receiver: Receiver) -> None:
    for _ in range(5):
        await saved(alerts, receiver)
    await alerts.evaluate()
    await asyncio.gather(*(alerts.notify() for _ in range(3)))
    assert len({got.json["alert_rule_id"] for got in receiver.got}) == len(receiver.got) == 5
