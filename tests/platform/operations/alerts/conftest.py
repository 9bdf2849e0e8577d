"""An organization with alert rules, metrics that the test writes, and a clock that the test controls."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import SecretStr
from tests.support.clock import HandClock
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import Receiver

from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.alerts import schedule
from gatehouse.platform.operations.alerts.notifying import Notifier
from gatehouse.platform.records.minutes.latency import bucket

BASE = "/api/alerts"
SECRET = "what alerts are signed with"
#: Ten seconds before a minute ends.
NOW = datetime(2026, 3, 1, 12, 30, 50, tzinfo=UTC)
RULE: dict[str, Any] = {
    "name": "Spend", "metric_type": "cost", "threshold": 10, "comparison": "gt", "window_minutes": 5,
}  # fmt: skip


class Alerts:
    def __init__(self, platform: RunningPlatform, tenant: Tenant, tools: Tools, clock: HandClock) -> None:
        self.platform = platform
        self.tenant = tenant
        self.tools = tools
        self.clock = clock

    async def new(self, **changed: Any) -> str:
        """Create a rule and return its id."""
        answer = await self.tenant.admin.client.post(BASE, json={**RULE, **changed})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def figures(self, ago: timedelta = timedelta(), latencies: tuple[float, ...] = (), **figures: Any) -> None:
        """Write the keeper's counts for the minute that was `ago` before now."""
        moment = datetime.fromtimestamp(self.clock.now(), UTC) - ago
        minute, hour = moment.replace(second=0), moment.replace(second=0, minute=0)
        names = ("requests", "errors", "blocked", "dlp_triggers", "cost_usd")
        packed = [(bucket(latency) << 32) + 1 for latency in latencies]
        self.platform.sql(
            "INSERT INTO usage_minutes VALUES (%s, %s, %s, %s, %s, %s, %s, %s::bigint[])",
            [self.tenant.id, minute, *(figures.get(name, 0) for name in names), packed],
        )
        self.platform.sql(
            "INSERT INTO usage_hours AS held VALUES (%s, %s, %s::bigint[])"
            " ON CONFLICT (tenant_id, hour) DO UPDATE SET latency = held.latency || excluded.latency",
            [self.tenant.id, hour, packed],
        )

    async def evaluate(self) -> None:
        """Evaluate the rules like the schedule."""
        await schedule.run_due(self.tools)

    async def notify(self) -> None:
        """Send the notifications like a process that runs jobs."""
        notifying = Notifier(self.tools)
        while await notifying.take():
            await notifying.drain()

    async def history(self, rule_id: str, **query: int) -> list[dict[str, Any]]:
        answer = await self.tenant.auditor.client.get(f"{BASE}/{rule_id}/history", params=query)
        assert answer.status_code == 200, answer.text
        history: list[dict[str, Any]] = answer.json()["history"]
        return history


@pytest.fixture
async def journal(platform: RunningPlatform, tmp_path: Path) -> AsyncIterator[Journal]:
    made = Journal(platform.installed.url, tmp_path / "journal")
    yield made
    await made.killed()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
async def alerts(platform: RunningPlatform, tenant: Tenant, receiver: Receiver) -> AsyncIterator[Alerts]:
    # Rows of earlier tests are removed.
    platform.sql("UPDATE alert_rules SET enabled = false")
    platform.sql("UPDATE alert_history SET webhook_attempted_at = now()")
    host, clock, receivers = platform.host, HandClock(NOW.timestamp()), receiver.trusted()
    tools = Tools(
        settings=host.settings.model_copy(update={"alert_webhook_secret": SecretStr(SECRET)}), database=host.database,
        sealer=host.sealer, outbound=host.outbound, clock=clock, receivers=receivers,
    )  # fmt: skip
    yield Alerts(platform, tenant, tools, clock)
    await receivers.close()


def without_secret(tools: Tools) -> Tools:
    settings = tools.settings.model_copy(update={"alert_webhook_secret": None})
    return msgspec.structs.replace(tools, settings=settings)
