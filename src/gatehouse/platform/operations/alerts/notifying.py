"""Sends the notifications of triggered rules, each once without retries (docs/alerts.md)."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from pydantic import SecretStr

from gatehouse.foundation.clock import iso
from gatehouse.foundation.egress.guard import UnsafeUrl
from gatehouse.foundation.outbound.receivers import ReceiverFailed
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.background.queue_runner import QueueRunner
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.table import AlertNotification


async def notify(tools: Tools) -> None:
    """Send notifications until cancelled. Raises the database's errors, after which the caller calls this function
    again."""
    await Notifier(tools).run()


class Notifier(QueueRunner[AlertNotification]):
    """The notifications that one process sends. Each takes at most 10 seconds."""

    max_concurrent = 256
    max_concurrent_per_tenant = 32
    poll_interval_seconds = 1.0
    stop_timeout_seconds = 3.0
    # The history shows a notification with an error as not delivered.
    failure_event = "alerts.notification_failed"

    async def claim(self, limit: int, busy_tenants: Sequence[UUID]) -> Sequence[AlertNotification]:
        now = datetime.fromtimestamp(self.tools.clock.now(), UTC)
        async with self.connections, self.tools.database.service() as session:
            notifications = await table.claim_unsent(session, now, limit, busy_tenants)
            await session.commit()
        return notifications

    async def work(self, piece: AlertNotification) -> None:
        fault = await self._send(piece)
        async with self.connections, self.tools.database.service() as session:
            await table.set_result(session, piece.id, fault)
            await session.commit()

    def log_fields(self, piece: AlertNotification) -> Mapping[str, str]:
        return {"record_id": str(piece.id)}

    async def _send(self, notification: AlertNotification) -> str | None:
        """Send the notification once. Returns the reason if the receiver has not accepted it, else None."""
        body, headers = signed(notification, self.tools.settings.alert_webhook_secret)
        count = self.tools.notifications.add
        try:
            received = await self.tools.receivers.post(notification.webhook_url, body, headers)
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
