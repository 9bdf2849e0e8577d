"""An organization with a receiver. Deliveries are made when the test requests it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import Receiver

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes import outbox
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations.webhooks import queue
from gatehouse.platform.operations.webhooks.delivering import Deliveries
from gatehouse.platform.operations.webhooks.listening import enqueue

BASE = "/api/admin/webhooks/"
SECRET = "a webhook's own secret"


class Hooks:
    """The webhooks of `tenant`. Events are dispatched and delivered only by `dispatch` and `deliver`."""

    def __init__(self, platform: RunningPlatform, tenant: Tenant, receiver: Receiver) -> None:
        self.platform = platform
        self.tenant = tenant
        self.receiver = receiver
        self.deliveries: Deliveries

    async def new(self, *events: str, path: str = "", **changed: Any) -> str:
        """Create a webhook for the receiver and return its id."""
        body = {
            "name": "mine", "url": self.receiver.url + path, "events": events or ["new_conversation"],
            "secret": SECRET, **changed,
        }  # fmt: skip
        answer = await self.tenant.admin.client.post(BASE, json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def announce(self, *payloads: Any, event_type: str = "new_conversation") -> None:
        """Announce events, each in a separate change."""
        for payload in payloads:
            async with self.platform.host.database.tenant(TenantId(self.tenant.id)) as session:
                change = Change(session, None, tenant_id=TenantId(self.tenant.id))
                change.announce(event_type, payload)
                await change.commit()

    async def dispatch(self) -> None:
        while await outbox.dispatch(self.platform.host.database, (enqueue,)):
            pass

    async def deliver(self) -> None:
        """Deliver everything that is due now, for all organizations."""
        while await self.deliveries.take():
            await self.deliveries.drain()

    async def send(self, *payloads: Any, event_type: str = "new_conversation") -> None:
        await self.announce(*payloads, event_type=event_type)
        await self.dispatch()
        await self.deliver()

    async def retry(self) -> None:
        """Make the next attempt due."""
        self.platform.sql(
            "UPDATE webhook_deliveries SET next_attempt_at = now() WHERE next_attempt_at > now() AND tenant_id = %s",
            [self.tenant.id],
        )
        self.platform.sql(
            "UPDATE webhook_queues SET due_at = now() WHERE tenant_id = %s AND due_at > now()", [self.tenant.id]
        )
        await self.deliver()

    async def detail(self, webhook_id: str, variant: str = "a") -> dict[str, Any]:
        headers = {"X-API-Variant": variant}
        answer = await self.tenant.auditor.client.get(f"{BASE}{webhook_id}", headers=headers)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def last(self, webhook_id: str, variant: str = "b") -> dict[str, Any]:
        """Return the newest delivery."""
        detail = await self.detail(webhook_id, variant)
        newest: dict[str, Any] = detail["deliveries" if variant == "b" else "recent_deliveries"][0]
        return newest


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
async def tools(platform: RunningPlatform, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tools]:
    """The `Tools` of a job process. They and administration accept the test's receiver."""
    host = platform.host
    receivers = receiver.trusted()
    monkeypatch.setattr(host, "receivers", receivers)
    yield Tools(
        settings=host.settings, database=host.database, sealer=host.sealer, outbound=host.outbound, clock=host.clock,
        receivers=receivers,
    )  # fmt: skip
    await receivers.close()


@pytest.fixture
async def hooks(
    platform: RunningPlatform, tenant: Tenant, receiver: Receiver, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> Hooks:
    # No retry becomes due by itself, however slow the machine is.
    monkeypatch.setattr(queue, "RETRY_DELAYS_SECONDS", (600.0, 3000.0))
    hooks = Hooks(platform, tenant, receiver)
    hooks.deliveries = Deliveries(tools)
    # Rows of earlier tests are removed.
    await hooks.dispatch()
    platform.sql("UPDATE webhook_queues SET due_at = NULL")
    return hooks
