"""Where the variants part: what an answer tells of a webhook's deliveries, and of a test (decisions 1.3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

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
from gatehouse.platform.operations.webhooks.sending import Attempt
from gatehouse.platform.operations.webhooks.table import DeliveryRow, WebhookRow

#: Characters of a payload in B.
_PAYLOAD: Final = 10_000

_Rows = Sequence[DeliveryRow]


def created(variant: Variant, row: WebhookRow, secret: str) -> Webhook:
    shown = _shown(row)
    return WebhookCreated(**shown, secret=secret) if variant is Variant.A else Webhook(**shown)


def detail(variant: Variant, row: WebhookRow, deliveries: _Rows) -> Webhook:
    return _DETAIL[variant](row, deliveries)


def tested(variant: Variant, attempt: Attempt) -> Tested:
    told = {"success": attempt.taken, "status_code": attempt.status, "error": attempt.error}
    return TestedA(**told, latency_ms=attempt.milliseconds) if variant is Variant.A else Tested(**told)


def _shown(row: WebhookRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in Webhook.model_fields}


def _a(row: WebhookRow, deliveries: _Rows) -> Webhook:
    told = [
        DeliveryA(
            id=each.id,
            webhook_id=each.webhook_id,
            event_type=each.event_type,
            payload=each.payload,
            response_status=each.response_status,
            response_body=each.response_body,
            success=each.status == "delivered",
            attempt_count=each.attempts,
            last_error=each.last_error,
            delivered_at=each.delivered_at,
            created_at=each.created_at,
        )
        for each in deliveries
    ]
    return WebhookA(**_shown(row), recent_deliveries=told)


def _b(row: WebhookRow, deliveries: _Rows) -> Webhook:
    told = [
        DeliveryB(
            id=each.id,
            webhook_id=each.webhook_id,
            event_type=each.event_type,
            status=each.status,
            attempt_count=each.attempts,
            last_attempt_at=each.last_attempt_at,
            # Before the first attempt there is nothing to try again.
            next_retry_at=each.next_attempt_at if each.attempts else None,
            response_code=each.response_status,
            error_message=each.last_error,
            payload=msgspec.json.encode(each.payload).decode()[:_PAYLOAD],
        )
        for each in deliveries
    ]
    return WebhookB(**_shown(row), deliveries=told)


def _c(row: WebhookRow, deliveries: _Rows) -> Webhook:
    told = [
        DeliveryC(
            id=each.id,
            webhook_id=each.webhook_id,
            event_type=each.event_type,
            payload=each.payload,
            status=_status_of_c(each),
            attempts=each.attempts,
            last_error=each.last_error,
            response_status=each.response_status,
            created_at=each.created_at,
        )
        for each in deliveries
    ]
    return WebhookC(**_shown(row), recent_deliveries=told)


def _status_of_c(row: DeliveryRow) -> str:
    """C knows no dead letter, and calls failed only what nothing tries again."""
    if row.status == "delivered":
        return "delivered"
    return "pending" if row.next_attempt_at is not None else "failed"


_DETAIL: Final[Mapping[Variant, Callable[[WebhookRow, _Rows], Webhook]]] = {
    Variant.A: _a, Variant.B: _b, Variant.C: _c,
}  # fmt: skip
