"""Errors of the endpoints of webhooks. A malformed body gives 400 (docs/webhooks.md)."""

from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import DETAIL, ErrorForm

FORM: Final[ErrorForm] = DETAIL.validating(400)


class WebhookNotFound(NotFound):
    message = "Webhook not found"


class TooManyWebhooks(Conflict):
    code = "too_many_webhooks"
    message = "The organization has reached the maximum number of webhooks. Delete a webhook first."


class UnsafeReceiver(Unprocessable):
    """The address guard refuses the URL of the receiver."""

    def __init__(self, reason: str) -> None:
        super().__init__(faults=[FieldFault("url", reason)])
