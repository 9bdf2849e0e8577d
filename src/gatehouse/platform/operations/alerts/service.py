"""Creates, changes, deletes and evaluates alert rules."""

from typing import Final
from urllib.parse import urlsplit

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations import receiver_urls
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.evaluation import evaluate
from gatehouse.platform.operations.alerts.schemas import AlertRuleUpdate, Evaluated, NewAlertRule, Triggered
from gatehouse.platform.operations.alerts.table import AlertRuleRow
from gatehouse.platform.request.injected import SplitTransactions

#: Maximum number of alert rules of an organization.
MAX_ALERT_RULES: Final = 200


class AlertRuleNotFound(NotFound):
    message = "Alert rule not found"


class TooManyAlertRules(Conflict):
    code = "too_many_alert_rules"
    message = "The organization has reached the maximum number of alert rules. Delete a rule first."


class BadWebhookUrl(Unprocessable):
    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("webhook_url", fault)])


async def check(transactions: SplitTransactions, receivers: Receivers, url: str | None) -> None:
    """Check the URL of a receiver without opening a connection. Raises `BadWebhookUrl`."""
    if reason := await receiver_urls.fault(transactions, receivers, url, kind="alert_rule"):
        raise BadWebhookUrl(reason)


async def create(change: Change, body: NewAlertRule) -> AlertRuleRow:
    """Create a rule. Raises `TooManyAlertRules`."""
    await require_room(
        change.session, ScopedLock.ALERTS, table.count_rules, limit=MAX_ALERT_RULES, full=TooManyAlertRules
    )
    now, values = utc_now(), body.model_dump()
    row = AlertRuleRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    # The path of the URL is not recorded, because many receivers have a secret in it.
    values["webhook_url"] = _audited_url(body.webhook_url)
    change.record("alert_rule.created", "alert_rule", row.id, alert_rule=values)
    return row


def update(change: Change, row: AlertRuleRow, body: AlertRuleUpdate) -> AlertRuleRow:
    """Change a rule. A changed `cooldown_minutes` also applies to a cooldown in progress."""
    sent = body.sent()
    changed = row.differing(sent)
    if changed:
        # A rule without `evaluated_at` is due at once.
        row.assign({**changed, "evaluated_at": None})
        if "webhook_url" in changed:
            changed["webhook_url"] = _audited_url(row.webhook_url)
        change.record("alert_rule.updated", "alert_rule", row.id, name=row.name, changed=changed)
    return row


async def delete(change: Change, row: AlertRuleRow) -> None:
    """Delete a rule and its history."""
    await change.session.delete(row)
    change.record("alert_rule.deleted", "alert_rule", row.id, name=row.name)


async def evaluate_now(change: Change, now: float) -> Evaluated:
    """Evaluate all enabled rules at the Unix time `now`."""
    evaluation = await evaluate(change, now)
    change.record("alert_rule.evaluated", "alert_rule", rules=evaluation.evaluated, triggered=len(evaluation.triggered))
    return Evaluated(
        rules_evaluated=evaluation.evaluated,
        rules_triggered=len(evaluation.triggered),
        triggered=[
            Triggered(rule_id=record.rule_id, rule_name=record.rule_name, metric_value=record.metric_value)
            for record in evaluation.triggered
        ],
    )


def _audited_url(url: str | None) -> str | None:
    """Return the form of a URL that is recorded in the audit chain. It contains only the host."""
    return url and f"https://{urlsplit(url).hostname}"
