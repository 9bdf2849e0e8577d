"""Errors of the endpoints of alerts. A malformed body gives 400."""

from typing import Final

from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.envelopes import DETAIL, ErrorFormat

ERROR_FORMAT: Final[ErrorFormat] = DETAIL.validating(400)


class AlertRuleNotFound(NotFound):
    message = "Alert rule not found"


class TooManyAlertRules(Conflict):
    code = "too_many_alert_rules"
    message = "The organization has reached the maximum number of alert rules. Delete a rule first."


class BadWebhookUrl(Unprocessable):
    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("webhook_url", fault)])
