"""Errors of the webhook endpoints. A malformed body is 400 (docs/webhooks.md)."""

from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import DETAIL, ErrorForm

FORM: Final[ErrorForm] = DETAIL.validating(400)


class WebhookNotFound(NotFound):
    message = "Webhook not found"


class TooManyWebhooks(Conflict):
    code = "too_many_webhooks"
    message = "The organization has as many webhooks as it may have. Remove some first."


class UnsafeReceiver(Unprocessable):
    """The address guard refuses the URL."""

    def __init__(self, reason: str) -> None:
        super().__init__(faults=[FieldFault("url", reason)])
