"""The responses that differ between variants: the deliveries of a webhook, and the result of a test
(docs/variants.md)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.foundation.http.variants import Variant
from gatehouse.platform.operations.webhooks.schemas import (
    DeliveryA,
    DeliveryB,
    DeliveryC,
    Tested,
    TestedA,
    Webhook,
    WebhookA,
    WebhookB,
    WebhookC,
    WebhookCreated,
)
from gatehouse.platform.operations.webhooks.sending import DeliveryAttempt
from gatehouse.platform.operations.webhooks.table import DeliveryRow, WebhookRow

#: Maximum length of a payload in variant B.
_MAX_PAYLOAD_CHARACTERS: Final = 10_000

_Rows = Sequence[DeliveryRow]


def created(variant: Variant, row: WebhookRow, secret: str) -> Webhook:
    shown = _shown(row)
    return WebhookCreated(**shown, secret=secret) if variant is Variant.A else Webhook(**shown)


def detail(variant: Variant, row: WebhookRow, deliveries: _Rows) -> Webhook:
    return _DETAIL[variant](row, deliveries)


def replayed(variant: Variant, row: DeliveryRow) -> ResponseBody:
    return _DELIVERY[variant](row)


def tested(variant: Variant, attempt: DeliveryAttempt) -> Tested:
    fields = {"success": attempt.taken, "status_code": attempt.status, "error": attempt.error}
    return TestedA(**fields, latency_ms=attempt.milliseconds) if variant is Variant.A else Tested(**fields)


def _shown(row: WebhookRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in Webhook.model_fields}


def _a(row: WebhookRow, deliveries: _Rows) -> Webhook:
    return WebhookA(**_shown(row), recent_deliveries=[_delivery_a(delivery) for delivery in deliveries])


def _delivery_a(delivery: DeliveryRow) -> DeliveryA:
    return DeliveryA(
        id=delivery.id,
        webhook_id=delivery.webhook_id,
        event_type=delivery.event_type,
        payload=delivery.payload,
        response_status=delivery.response_status,
        response_body=delivery.response_body,
        success=delivery.status == "delivered",
        attempt_count=delivery.attempts,
        last_error=delivery.last_error,
        delivered_at=delivery.delivered_at,
        created_at=delivery.created_at,
    )


def _b(row: WebhookRow, deliveries: _Rows) -> Webhook:
    return WebhookB(**_shown(row), deliveries=[_delivery_b(delivery) for delivery in deliveries])


def _delivery_b(delivery: DeliveryRow) -> DeliveryB:
    return DeliveryB(
        id=delivery.id,
        webhook_id=delivery.webhook_id,
        event_type=delivery.event_type,
        status=delivery.status,
        attempt_count=delivery.attempts,
        last_attempt_at=delivery.last_attempt_at,
        # Null before the first attempt, because the first attempt is not a retry.
        next_retry_at=delivery.next_attempt_at if delivery.attempts else None,
        response_code=delivery.response_status,
        error_message=delivery.last_error,
        payload=msgspec.json.encode(delivery.payload).decode()[:_MAX_PAYLOAD_CHARACTERS],
    )


def _c(row: WebhookRow, deliveries: _Rows) -> Webhook:
    return WebhookC(**_shown(row), recent_deliveries=[_delivery_c(delivery) for delivery in deliveries])


def _delivery_c(delivery: DeliveryRow) -> DeliveryC:
    return DeliveryC(
        id=delivery.id,
        webhook_id=delivery.webhook_id,
        event_type=delivery.event_type,
        payload=delivery.payload,
        status=_status_of_c(delivery),
        attempts=delivery.attempts,
        last_error=delivery.last_error,
        response_status=delivery.response_status,
        created_at=delivery.created_at,
    )


def _status_of_c(row: DeliveryRow) -> str:
    """Return the status of a delivery in variant C. This variant has no dead letters, and its status `failed`
    is final."""
    if row.status == "delivered":
        return "delivered"
    return "pending" if row.next_attempt_at is not None else "failed"


_DETAIL: Final[Mapping[Variant, Callable[[WebhookRow, _Rows], Webhook]]] = {
    Variant.A: _a, Variant.B: _b, Variant.C: _c,
}  # fmt: skip
_DELIVERY: Final[Mapping[Variant, Callable[[DeliveryRow], ResponseBody]]] = {
    Variant.A: _delivery_a, Variant.B: _delivery_b, Variant.C: _delivery_c,
}  # fmt: skip
