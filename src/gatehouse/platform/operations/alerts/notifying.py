"""Tells the receivers of rules that triggered (reference 3, Alerts, Notification): on every process that works on jobs,
many at once. Each is tried once."""

import asyncio
import hashlib
import hmac
from collections import Counter
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
import structlog
from pydantic import SecretStr

from gatehouse.foundation.clock import iso
from gatehouse.foundation.egress import UnsafeUrl
from gatehouse.foundation.receivers import ReceiverFailed
from gatehouse.platform.jobs import Tools
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.table import Notification

log = structlog.get_logger(__name__)

#: Receivers that a process waits for at once: ten seconds each at most. And of them an organization's, so that one with
#: many dead ones leaves room for the others.
AT_ONCE: Final = 256
A_TENANTS: Final = 32
#: Notifications that are taken together.
_TAKEN: Final = 32
#: Seconds between two looks for what triggered.
_PAUSE: Final = 1.0
#: Seconds that those on their way are waited for at the end.
_LAST: Final = 3.0


async def notify(tools: Tools) -> None:
    """Until it is cancelled. Raises what the database raises: whoever called it begins anew."""
    await Notifying(tools).run()


class Notifying:
    """One process's notifications."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        #: with their organizations
        self._under_way: dict[asyncio.Task[None], UUID] = {}
        # Of the pool's few connections, one: the rest is for others.
        self._database = asyncio.Lock()

    async def run(self) -> None:
        try:
            while True:
                if await self.take() < _TAKEN:
                    await asyncio.sleep(_PAUSE)
        finally:
            if self._under_way:
                await asyncio.wait(self._under_way, timeout=_LAST)
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def take(self) -> int:
        """Begins to send what triggered, as much as may be at once; how many these were."""
        most = min(_TAKEN, AT_ONCE - len(self._under_way))
        if most <= 0:
            return 0
        busy = [tenant for tenant, sent in Counter(self._under_way.values()).items() if sent >= A_TENANTS]
        now = datetime.fromtimestamp(self._tools.clock.now(), UTC)
        async with self._database, self._tools.database.service() as session:
            taken = await table.claim_unsent(session, now, most, busy)
            await session.commit()
        for notification in taken:
            task = asyncio.create_task(self._tell(notification))
            self._under_way[task] = notification.tenant_id
            task.add_done_callback(self._under_way.pop)
        return len(taken)

    async def settle(self) -> None:
        """Returns when nothing is on its way."""
        await asyncio.gather(*self._under_way)

    async def _tell(self, notification: Notification) -> None:
        try:
            error = await self._send(notification)
            async with self._database, self._tools.database.service() as session:
                await table.answered(session, notification.id, error)
                await session.commit()
        except Exception as failed:
            # The database's, most likely. The history goes on saying that it was not delivered.
            log.warning("alerts.notification_failed", record_id=str(notification.id), reason=type(failed).__name__)

    async def _send(self, notification: Notification) -> str | None:
        """Why the receiver has not taken it; None where it has."""
        body, headers = signed(notification, self._tools.settings.alert_webhook_secret)
        count = self._tools.notifications.add
        try:
            received = await self._tools.receivers.post(notification.webhook_url, body, headers)
        except UnsafeUrl as error:
            count(("alert", "blocked"))
            return f"blocked by the address guard: {error.reason}"
        except ReceiverFailed as error:
            count(("alert", "failed"))
            return error.reason
        count(("alert", "delivered" if received.taken else "failed"))
        return received.fault


def signed(notification: Notification, secret: SecretStr | None) -> tuple[bytes, dict[str, str]]:
    """Body and headers, signed as webhooks are."""
    body = msgspec.json.encode(
        {
            "alert_rule_id": notification.rule_id,
            "alert_name": notification.rule_name,
            "metric_type": notification.metric_type,
            "metric_value": notification.metric_value,
            "threshold": notification.threshold,
            "comparison": notification.comparison,
            "triggered_at": iso(notification.triggered_at),
        }
    )
    headers = {"Content-Type": "application/json"}
    if secret is not None:
        digest = hmac.new(secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
        headers |= {"X-Service-Signature": f"sha256={digest}", "X-Webhook-Signature": digest}
    return body, headers
