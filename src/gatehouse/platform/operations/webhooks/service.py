"""Creates, changes, deletes and tests webhooks, and replays their deliveries."""

from typing import Any, Final
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations import receiver_urls
from gatehouse.platform.operations.webhooks import listening, table
from gatehouse.platform.operations.webhooks.schemas import NewWebhook, WebhookUpdate
from gatehouse.platform.operations.webhooks.sending import (
    DeliveryAttempt,
    WebhookMessage,
    WebhookTarget,
    secret_context,
    send,
)
from gatehouse.platform.operations.webhooks.table import DeliveryRow, WebhookRow
from gatehouse.platform.request.injected import SplitTransactions

#: Maximum number of webhooks of an organization. Each event may be sent to all of them.
MAX_WEBHOOKS: Final = 500

_TEST_EVENT_TYPE: Final = "webhook_test"


class WebhookNotFound(NotFound):
    message = "Webhook not found"


class DeliveryNotFound(NotFound):
    """The webhook has no such delivery, or it was removed with its payload (docs/webhooks.md, Delivery guarantees)."""

    message = "Delivery not found. Only the last deliveries of a webhook are stored."


class DeliveryAccepted(Conflict):
    code = "delivery_accepted"
    message = "The receiver has accepted this delivery. Only failed deliveries and dead letters can be replayed."


class DeliveryWaiting(Conflict):
    code = "delivery_waiting"
    message = "This delivery waits for an attempt. It can be replayed once it has finally failed."


class WebhookDisabled(Conflict):
    code = "webhook_disabled"
    message = "The webhook is disabled, so nothing is sent to it. Enable it, then replay the delivery."


class TooManyWebhooks(Conflict):
    code = "too_many_webhooks"
    message = "The organization has reached the maximum number of webhooks. Delete a webhook first."


class UnsafeReceiver(Unprocessable):
    """The address guard refuses the URL of the receiver."""

    def __init__(self, reason: str) -> None:
        super().__init__(faults=[FieldFault("url", reason)])


async def check(transactions: SplitTransactions, receivers: Receivers, url: str | None) -> None:
    """Check the URL of a receiver without opening a connection. Raises `UnsafeReceiver`."""
    if reason := await receiver_urls.fault(transactions, receivers, url, kind="webhook"):
        raise UnsafeReceiver(reason)


async def create(change: Change, sealer: Sealer, new: NewWebhook) -> WebhookRow:
    """Create a webhook. Raises `TooManyWebhooks`."""
    await require_room(
        change.session, ScopedLock.WEBHOOKS, table.count_webhooks, limit=MAX_WEBHOOKS, full=TooManyWebhooks
    )
    webhook_id, now = new_id(), utc_now()
    row = WebhookRow(
        id=webhook_id,
        tenant_id=change.tenant_id,
        name=new.name,
        url=new.url,
        events=list(new.events),
        sealed_secret=sealer.seal(new.secret.encode(), context=secret_context(change.tenant_id, webhook_id)),
        enabled=new.enabled,
        include_logged=new.include_logged,
        created_at=now,
        updated_at=now,
    )
    change.session.add(row)
    # The URL is not recorded, because many receivers have a secret in it.
    change.record("webhook.created", "webhook", row.id, name=row.name, events=row.events, enabled=row.enabled)
    return row


def update(change: Change, sealer: Sealer, row: WebhookRow, body: WebhookUpdate) -> WebhookRow:
    """Change a webhook. Queued deliveries are sent to its new URL and signed with its new secret."""
    sent: dict[str, Any] = body.sent()
    secret: str | None = sent.pop("secret", None)
    changed = row.differing(sent)
    if secret is not None:
        row.sealed_secret = sealer.seal(secret.encode(), context=secret_context(row.tenant_id, row.id))
    if changed or secret is not None:
        row.assign(changed)
        names = sorted({*changed, "secret"} if secret is not None else changed)
        details = {name: value for name, value in changed.items() if name != "url"}
        change.record("webhook.updated", "webhook", row.id, changed=names, **details)
    return row


async def delete(change: Change, row: WebhookRow) -> None:
    """Delete a webhook and its deliveries. An attempt in progress is still completed."""
    await change.session.delete(row)
    change.record("webhook.deleted", "webhook", row.id, name=row.name)


async def test(
    transactions: SplitTransactions, receivers: Receivers, sealer: Sealer, webhook_id: UUID
) -> DeliveryAttempt:
    """Send a `webhook_test` event at once, without the queue, and regardless of `enabled` and `events`. The delivery is
    not retried, and is listed among the webhook's deliveries. Raises `WebhookNotFound`."""
    async with transactions.reading() as session:
        row = await table.find_webhook(session, webhook_id)
        if row is None:
            raise WebhookNotFound
        target = WebhookTarget(row.id, row.tenant_id, row.url, row.sealed_secret)
        payload = {"message": "This is a test.", "webhook_id": str(row.id), "webhook_name": row.name}
    message = WebhookMessage(new_id(), _TEST_EVENT_TYPE, msgspec.json.encode(payload).decode())
    attempt = await send(receivers, sealer, target, message)
    async with transactions.changing() as change:
        if await table.find_webhook(change.session, webhook_id) is not None:
            change.session.add(_delivery(target, message, payload, attempt))
        change.record(
            "webhook.tested", "webhook", webhook_id, success=attempt.taken, status_code=attempt.status,
            error=attempt.error,
        )  # fmt: skip
    return attempt


async def replay(change: Change, webhook: WebhookRow, delivery_id: UUID | None) -> DeliveryRow:
    """Queue a delivery again that has no further attempt. It is sent like a new one. Raises `DeliveryNotFound`,
    `DeliveryAccepted`, `DeliveryWaiting`, `WebhookDisabled`."""
    # The turn is locked before the delivery, as the delivering processes do, so that no two transactions deadlock.
    await listening.wake(change.session, [webhook.id])
    delivery = await table.find_delivery(change.session, webhook.id, delivery_id)
    if delivery is None:
        raise DeliveryNotFound
    if delivery.status == "delivered":
        raise DeliveryAccepted
    if delivery.next_attempt_at is not None:
        raise DeliveryWaiting
    if not webhook.enabled:
        raise WebhookDisabled
    change.record(
        "webhook.delivery_replayed", "webhook", webhook.id, delivery_id=delivery.id, event_type=delivery.event_type,
        previous_status=delivery.status, attempts=delivery.attempts,
    )  # fmt: skip
    return await table.requeue(change.session, delivery.id)


def _delivery(
    target: WebhookTarget, message: WebhookMessage, payload: dict[str, Any], attempt: DeliveryAttempt
) -> DeliveryRow:
    return DeliveryRow(
        id=message.id,
        tenant_id=target.tenant_id,
        webhook_id=target.webhook_id,
        event_type=message.event_type,
        payload=payload,
        status="delivered" if attempt.taken else "failed",
        attempts=1,
        next_attempt_at=None,
        response_status=attempt.status,
        response_body=attempt.body,
        last_error=attempt.error,
        last_attempt_at=attempt.at,
        delivered_at=attempt.at if attempt.taken else None,
        created_at=attempt.at,
    )
