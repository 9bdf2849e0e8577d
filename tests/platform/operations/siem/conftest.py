"""An organization whose events are dispatched and forwarded to the test's receiver only when the test calls for it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import Receiver
from tests.support.tools import tools_of

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes import outbox
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations.siem.forwarding import Forwarding
from gatehouse.platform.operations.siem.queue import enqueue

PATH = "/api/v1/admin/siem"
TOKEN = "a-collectors-own-token-5f1c"


def parsed(body: bytes) -> list[dict[str, Any]]:
    """Return the events of a batch that the collector received."""
    return [msgspec.json.decode(line)["event"] for line in body.splitlines()]


class Siem:
    """The forwarding of `tenant`'s events. They are dispatched and sent only by `dispatch` and `forward`."""

    def __init__(self, platform: RunningPlatform, tenant: Tenant, receiver: Receiver, forwarding: Forwarding) -> None:
        self.platform = platform
        self.tenant = tenant
        self.receiver = receiver
        self.forwarding = forwarding

    async def put(self, **body: Any) -> dict[str, Any]:
        answer = await self.tenant.admin.client.put(PATH, json=body)
        assert answer.status_code == 200, answer.text
        response_body: dict[str, Any] = answer.json()
        return response_body

    async def switch(self, *, on: bool) -> None:
        flag = "/api/v1/admin/org/feature-flags/audit_log_streaming"
        answer = await self.tenant.admin.client.patch(flag, json={"enabled": on})
        assert answer.status_code == 200, answer.text

    async def begin(self, **body: Any) -> None:
        """Configure the test's receiver as the organization's HEC collector, or the receiver that `body` describes."""
        await self.switch(on=True)
        await self.put(**(body or {"type": "hec", "url": self.receiver.url, "token": TOKEN}))

    async def record(self, count: int = 1, **details: Any) -> None:
        """Record audit events in one change."""
        async with self.platform.host.database.tenant(TenantId(self.tenant.id)) as session:
            change = Change(session, None, tenant_id=TenantId(self.tenant.id))
            for n in range(count):
                change.record("organization.changed", "organization", n, **details)
            await change.commit()

    async def announce(self, event_type: str, payload: dict[str, Any]) -> None:
        async with self.platform.host.database.tenant(TenantId(self.tenant.id)) as session:
            change = Change(session, None, tenant_id=TenantId(self.tenant.id))
            change.announce(event_type, payload)
            await change.commit()

    async def dispatch(self) -> None:
        while await outbox.dispatch(self.platform.host.database, (enqueue,)):
            pass

    async def forward(self) -> None:
        """Send everything that is due now, for all organizations."""
        while await self.forwarding.take():
            await self.forwarding.drain()

    async def retry(self) -> None:
        """Make the next attempt due now, and send what is due."""
        self.platform.sql("UPDATE siem_cursors SET due_at = now() WHERE tenant_id = %s", [self.tenant.id])
        await self.forward()

    async def status(self) -> dict[str, Any]:
        answer = await self.tenant.auditor.client.get(PATH)
        assert answer.status_code == 200, answer.text
        status: dict[str, Any] = answer.json()["status"]
        return status

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return all events that the collector received, in order."""
        return [event for got in self.receiver.got for event in parsed(got.body)]

    @property
    def sequences(self) -> list[int]:
        return [event["event"]["sequence"] for event in self.events if "sequence" in event["event"]]

    def stored_sequences(self) -> list[int]:
        rows = self.platform.sql(
            "SELECT sequence FROM audit_events WHERE tenant_id = %s ORDER BY sequence", [self.tenant.id]
        )
        return [sequence for (sequence,) in rows]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
async def tools(
    platform: RunningPlatform, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Tools]:
    """The `Tools` of a job process. They and the administration API trust the certificate of the test's receiver."""
    host = platform.host
    receivers = receiver.trusted()
    settings = host.settings.model_copy(update={"gatehouse_home": tmp_path})
    monkeypatch.setattr(host, "receivers", receivers)
    monkeypatch.setattr(host, "settings", settings)
    yield tools_of(host)
    await receivers.close()


@pytest.fixture
async def siem(platform: RunningPlatform, tenant: Tenant, receiver: Receiver, tools: Tools) -> Siem:
    # Forwarding of earlier tests' organizations is disabled, so that dispatching their waiting events queues nothing.
    platform.sql("UPDATE siem_targets SET enabled = false")
    siem = Siem(platform, tenant, receiver, Forwarding(tools))
    await siem.dispatch()
    return siem
