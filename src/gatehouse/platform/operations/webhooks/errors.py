"""Errors of the endpoints of webhooks. A malformed body gives 400 (docs/webhooks.md)."""

from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import DETAIL, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = DETAIL.validating(400)


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
