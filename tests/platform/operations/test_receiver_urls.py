"""Unsafe URLs of webhooks, alerts and SIEM receivers. Each is refused when it is saved and when something is sent, the
refusal is recorded, and no connection is made."""

from collections.abc import AsyncIterator
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
import pytest
from aiohttp import web
from tests.platform.operations.alerts import conftest as alerts
from tests.platform.operations.siem import conftest as siem
from tests.platform.operations.webhooks import conftest as webhooks
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import Receiver
from tests.support.unsafe_urls import BLOCKED_URLS, INSIDE, MALFORMED_URLS, connecting_nowhere, resolving

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.alerts.notifying import Notifier
from gatehouse.platform.operations.alerts.schedule import run_due
from gatehouse.platform.operations.siem.forwarding import Forwarding
from gatehouse.platform.operations.webhooks.delivering import Deliveries

#: Receivers that use HTTP: the type of the resource, followed by the type of the SIEM receiver.
HTTP = ["webhook", "alert", "siem hec", "siem webhook"]
#: A public IP address, so that no name is resolved. Nothing is sent to it.
OUTSIDE = "https://8.8.8.8/"


class Kind(Protocol):
    """A way to set a receiver's URL, with the `field` of the request's body and the type of the `resource`."""

    field: str
    resource: str

    async def save(self, url: str) -> tuple[int, Any]:
        """Save the URL. Return status and body of the answer."""

    async def sent(self, tools: Tools, url: str) -> str | None:
        """Send something to the URL, which was saved before it became unsafe. Return the recorded error."""


class Webhook:
    field, resource = "url", "webhook"

    def __init__(self, platform: RunningPlatform, tenant: Tenant, receiver: Receiver) -> None:
        self.hooks = webhooks.Hooks(platform, tenant, receiver)
        self.body = {"name": "x", "url": OUTSIDE, "events": ["new_conversation"], "secret": webhooks.SECRET}
        self.id: str | None = None

    async def save(self, url: str) -> tuple[int, Any]:
        answer = await self.hooks.tenant.admin.client.post(webhooks.BASE, json={**self.body, "url": url})
        return answer.status_code, answer.json()

    async def sent(self, tools: Tools, url: str) -> str | None:
        self.hooks.deliveries = Deliveries(tools)
        self.id = self.id or (await self.save(OUTSIDE))[1]["id"]
        self.hooks.platform.sql("UPDATE webhooks SET url = %s WHERE id = %s", [url, self.id])
        await self.hooks.send({})
        delivery = await self.hooks.last(str(self.id))
        assert delivery["status"] == "failed"
        error: str | None = delivery["error_message"]
        return error


class Alert:
    field, resource = "webhook_url", "alert_rule"

    def __init__(self, platform: RunningPlatform, tenant: Tenant, _: Receiver) -> None:
        self.platform, self.tenant = platform, tenant
        self.body = {**alerts.RULE, "comparison": "gte", "threshold": 0}
        self.id: str | None = None

    async def save(self, url: str) -> tuple[int, Any]:
        body = {**self.body, "webhook_url": url}
        answer = await self.tenant.admin.client.post(alerts.BASE, json=body)
        return answer.status_code, answer.json()

    async def sent(self, tools: Tools, url: str) -> str | None:
        self.id = self.id or (await self.save(OUTSIDE))[1]["id"]
        self.platform.sql(
            "UPDATE alert_rules SET webhook_url = %s, evaluated_at = NULL, last_triggered_at = NULL WHERE id = %s",
            [url, self.id],
        )
        await run_due(tools)
        notifying = Notifier(tools)
        while await notifying.take():
            await notifying.drain()
        answer = await self.tenant.admin.client.get(f"{alerts.BASE}/{self.id}/history", params={"limit": 1})
        (result,) = answer.json()["history"]
        assert result["webhook_delivered"] is False
        error: str | None = result["webhook_error"]
        return error


class Siem:
    resource = "siem"

    def __init__(self, kind: str, platform: RunningPlatform, tenant: Tenant, receiver: Receiver) -> None:
        self.kind, self.platform, self.tenant, self.receiver = kind, platform, tenant, receiver
        self.secret = {"hec": {"token": siem.TOKEN}, "webhook": {"secret": webhooks.SECRET}}.get(kind, {})
        self.field = "url" if self.secret else "host"
        self.siem: siem.Siem | None = None

    async def save(self, url: str) -> tuple[int, Any]:
        where: dict[str, Any] = {"url": url}
        if not self.secret:
            where = {"host": (url.partition("//")[2] or url).rstrip("/"), "port": 6514}
            if (host := urlsplit(url).hostname) and url in BLOCKED_URLS:
                where["host"] = host
        answer = await self.tenant.admin.client.put(siem.PATH, json={"type": self.kind, **where, **self.secret})
        return answer.status_code, answer.json()

    async def sent(self, tools: Tools, url: str) -> str | None:
        if self.siem is None:
            self.siem = siem.Siem(self.platform, self.tenant, self.receiver, Forwarding(tools))
            await self.siem.switch(on=True)
            assert (await self.save(OUTSIDE))[0] == 200
        column, value = ("url", url) if self.secret else ("host", urlsplit(url).hostname)
        self.platform.sql(f"UPDATE siem_targets SET {column} = %s WHERE tenant_id = %s", [value, self.tenant.id])
        if not self.secret:
            self.platform.sql(
                "UPDATE siem_targets SET port = %s WHERE tenant_id = %s", [urlsplit(url).port or 443, self.tenant.id]
            )
        await self.siem.record()
        await self.siem.dispatch()
        await self.siem.retry()
        error: str | None = (await self.siem.status())["last_error"]
        return error


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture(params=[*HTTP, "siem syslog_tcp", "siem syslog_tls"])
def kind(request: pytest.FixtureRequest, platform: RunningPlatform, tenant: Tenant, receiver: Receiver) -> Kind:
    # Rows of earlier tests are removed.
    platform.sql("UPDATE alert_rules SET enabled = false")
    platform.sql("UPDATE alert_history SET webhook_attempted_at = now()")
    platform.sql("UPDATE webhook_queues SET due_at = NULL")
    platform.sql("UPDATE siem_targets SET enabled = false")
    of, _, type_ = str(request.param).partition(" ")
    if of == "siem":
        return Siem(type_, platform, tenant, receiver)
    return {"webhook": Webhook, "alert": Alert}[of](platform, tenant, receiver)


@pytest.fixture
async def strict(platform: RunningPlatform) -> AsyncIterator[Tools]:
    """The `Tools` of a job process that may connect only to public addresses."""
    host = platform.host
    receivers = Receivers(EgressGuard())
    yield Tools(
        settings=host.settings, database=host.database, sealer=host.sealer, outbound=host.outbound, clock=SYSTEM_CLOCK,
        receivers=receivers,
    )  # fmt: skip
    await receivers.close()


async def test_an_internal_url_is_not_saved_and_the_attempt_is_audited(
    kind: Kind, platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting_nowhere(monkeypatch)
    for url in BLOCKED_URLS:
        status, body = await kind.save(url)
        assert (status, body["detail"][0]["loc"][-1]) == (422 if kind.resource == "siem" else 400, kind.field), url
    events = await platform.audit(tenant, "receiver.refused")
    assert [event["details"]["host"] for event in events] == [urlsplit(url).hostname for url in BLOCKED_URLS]
    assert {(event["resource_type"], event["outcome"]) for event in events} == {(kind.resource, "refused")}
    assert all(event["actor_id"] == str(tenant.admin.id) and event["reason"] for event in events)


async def test_urls_that_parsers_interpret_differently_are_not_saved(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting_nowhere(monkeypatch)
    urls = MALFORMED_URLS
    if kind.field == "host":
        # A syslog receiver has no scheme and no port in this field, and surrounding spaces are removed.
        urls = [url for url in urls if url.startswith("https://") and not set(url[8:]) & set(":\t\r\n")]
    for url in urls:
        status, body = await kind.save(url)
        assert (status, body["detail"][0]["loc"][-1]) == (422 if kind.resource == "siem" else 400, kind.field), url


async def test_a_name_that_resolves_to_an_internal_address_is_not_saved(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting_nowhere(monkeypatch)
    for addresses in INSIDE:
        with monkeypatch.context() as patch:
            resolving(patch, addresses)
            status, body = await kind.save("https://inside.example/")
        assert (status, body["detail"][0]["loc"][-1]) == (422 if kind.resource == "siem" else 400, kind.field)


async def test_sending_to_an_internal_url_is_recorded_and_makes_no_connection(
    kind: Kind, strict: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting_nowhere(monkeypatch)
    # One URL of each kind. `test_receivers` uses all of them.
    for url in BLOCKED_URLS[::4]:
        error = await kind.sent(strict, url)
        assert error is not None, url
        assert error.startswith("blocked by the address guard: "), url


async def test_no_connection_is_made_if_a_saved_name_now_resolves_to_an_internal_address(
    kind: Kind, strict: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting_nowhere(monkeypatch)
    await kind.sent(strict, "https://127.0.0.1/")
    with monkeypatch.context() as patch:
        resolving(patch, ["93.184.216.34"])
        assert (await kind.save("https://rebinding.example/"))[0] in {200, 201}
    for number, addresses in enumerate(INSIDE):
        with monkeypatch.context() as patch:
            resolving(patch, addresses)
            error = await kind.sent(strict, f"https://rebinding{number}.example/")
        assert error is not None
        assert error.startswith("blocked by the address guard: "), addresses


@pytest.mark.parametrize("kind", HTTP, indirect=True)
async def test_redirects_are_not_followed(kind: Kind, strict: Tools, receiver: Receiver) -> None:
    receivers = receiver.trusted()
    tools = msgspec.structs.replace(strict, receivers=receivers)
    for status, location in ((301, receiver.url), (302, "http://169.254.169.254/"), (307, receiver.url), (308, "//x/")):
        receiver.answers.append(web.Response(status=status, headers={"Location": location}))
        before = len(receiver.got)
        error = await kind.sent(tools, receiver.url + f"from/{status}")
        assert error == f"the receiver answered {status} with a redirect, which is not followed"
        assert len(receiver.got) == before + 1
        if isinstance(kind, Webhook):
            # Without this, another attempt would be due.
            kind.hooks.platform.sql("UPDATE webhook_deliveries SET next_attempt_at = NULL")
            kind.hooks.platform.sql("UPDATE webhook_queues SET due_at = NULL")
    await receivers.close()
