"""Makes one attempt at a delivery: envelope, signature and result (docs/webhooks.md)."""

import hashlib
import hmac
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import iso, utc_now
from gatehouse.foundation.egress.guard import UnsafeUrl
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound.receivers import ReceiverFailed, Receivers
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer

#: Time limit for an attempt, from the resolution of the name to the end of the response.
ATTEMPT_TIMEOUT_SECONDS: Final = 10.0

_UNREADABLE: Final = "the webhook's secret cannot be opened with the current master keys; set the secret again"


class WebhookTarget(msgspec.Struct, frozen=True):
    """The receiver of the deliveries of a webhook."""

    webhook_id: UUID
    tenant_id: UUID
    url: str
    sealed_secret: str


class WebhookMessage(msgspec.Struct, frozen=True):
    """A delivery to send. `payload` is a JSON object as text."""

    id: UUID
    event_type: str
    payload: str


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an attempt. `status` and `body` come from the receiver's response, and are None without a
    response."""

    at: datetime
    taken: bool = False
    #: whether the address guard blocked the attempt; then no connection was opened, and there is no retry
    blocked: bool = False
    status: int | None = None
    body: str | None = None
    error: str | None = None
    milliseconds: float | None = None


def secret_context(tenant_id: TenantId | UUID, webhook_id: UUID) -> bytes:
    """Return the context under which a webhook's secret is sealed."""
    return f"webhook:{tenant_id}:{webhook_id}".encode()


def signed(target: WebhookTarget, message: WebhookMessage, secret: bytes, at: datetime) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a delivery. The signature headers of all variants are included."""
    envelope: dict[str, Any] = {
        "event_type": message.event_type, "payload": msgspec.Raw(message.payload.encode()), "timestamp": iso(at),
    }  # fmt: skip
    body = msgspec.json.encode(envelope)
    digest = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return body, {
        "Content-Type": "application/json",
        "X-Service-Webhook-Id": str(target.webhook_id),
        "X-Service-Delivery-Id": str(message.id),
        "X-Service-Signature": f"sha256={digest}",
        "X-Webhook-Signature": digest,
    }


async def send(receivers: Receivers, sealer: Sealer, target: WebhookTarget, message: WebhookMessage) -> DeliveryAttempt:
    """Make one attempt. Does not raise, because the result contains any failure."""
    at = utc_now()
    try:
        secret = sealer.open(target.sealed_secret, context=secret_context(target.tenant_id, target.webhook_id))
    except CannotOpen:
        return DeliveryAttempt(at=at, error=_UNREADABLE)
    body, headers = signed(target, message, secret, at)
    try:
        received = await receivers.post(target.url, body, headers, seconds=ATTEMPT_TIMEOUT_SECONDS)
    except UnsafeUrl as error:
        return DeliveryAttempt(at=at, blocked=True, error=f"blocked by the address guard: {error.reason}")
    except ReceiverFailed as error:
        return DeliveryAttempt(at=at, error=error.reason)
    return DeliveryAttempt(
        at=at,
        taken=received.taken,
        status=received.status,
        body=received.body,
        error=received.fault,
        milliseconds=received.milliseconds,
    )
