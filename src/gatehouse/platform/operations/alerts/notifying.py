"""Sends the notifications of triggered rules. Every process that runs jobs sends many of them concurrently, each once
without retries (docs/alerts.md)."""

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
from gatehouse.foundation.egress.guard import UnsafeUrl
from gatehouse.foundation.outbound.receivers import ReceiverFailed
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.table import AlertNotification

log = structlog.get_logger(__name__)

#: Maximum number of notifications that a process sends concurrently, in total and for one organization. Each takes at
#: most 10 seconds. The limit for one organization prevents many unavailable receivers of it from delaying other
#: organizations.
MAX_CONCURRENT: Final = 256
MAX_CONCURRENT_PER_TENANT: Final = 32
#: Number of notifications claimed by one query.
_CLAIMS_PER_QUERY: Final = 32
_POLL_INTERVAL_SECONDS: Final = 1.0
#: Time limit for notifications in progress when the process stops.
_STOP_TIMEOUT_SECONDS: Final = 3.0


async def notify(tools: Tools) -> None:
    """Send notifications until cancelled. Raises the database's errors; the caller starts it again."""
    await Notifier(tools).run()


class Notifier:
    """The notifications that one process sends."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        #: the tenant of each task
        self._sending: dict[asyncio.Task[None], UUID] = {}
        # The lock limits notifications to one connection of the pool, so that the others stay free for other work.
        self._database = asyncio.Lock()

    async def run(self) -> None:
        try:
            while True:
                if await self.take() < _CLAIMS_PER_QUERY:
                    await asyncio.sleep(_POLL_INTERVAL_SECONDS)
        finally:
            if self._sending:
                await asyncio.wait(self._sending, timeout=_STOP_TIMEOUT_SECONDS)
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)

    async def take(self) -> int:
        """Start to send waiting notifications, within the limits. Returns their number."""
        limit = min(_CLAIMS_PER_QUERY, MAX_CONCURRENT - len(self._sending))
        if limit <= 0:
            return 0
        sending_by_tenant = Counter(self._sending.values())
        busy = [tenant for tenant, count in sending_by_tenant.items() if count >= MAX_CONCURRENT_PER_TENANT]
        now = datetime.fromtimestamp(self._tools.clock.now(), UTC)
        async with self._database, self._tools.database.service() as session:
            notifications = await table.claim_unsent(session, now, limit, busy)
            await session.commit()
        for notification in notifications:
            task = asyncio.create_task(self._notify(notification))
            self._sending[task] = notification.tenant_id
            task.add_done_callback(self._sending.pop)
        return len(notifications)

    async def drain(self) -> None:
        """Wait until all notifications in progress are sent."""
        await asyncio.gather(*self._sending)

    async def _notify(self, notification: AlertNotification) -> None:
        try:
            fault = await self._send(notification)
            async with self._database, self._tools.database.service() as session:
                await table.set_result(session, notification.id, fault)
                await session.commit()
        except Exception as error:
            # The error most likely comes from the database. The history then still shows the notification as not
            # delivered.
            log.warning("alerts.notification_failed", record_id=str(notification.id), reason=type(error).__name__)

    async def _send(self, notification: AlertNotification) -> str | None:
        """Send the notification once. Returns the reason if the receiver has not accepted it, else None."""
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


def signed(notification: AlertNotification, secret: SecretStr | None) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a notification. It is signed like a webhook delivery."""
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
