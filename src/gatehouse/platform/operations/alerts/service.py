"""The rules of alert rules."""

from typing import Final
from urllib.parse import urlsplit

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.receivers import Receivers
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.change import Change
from gatehouse.platform.operations import receiver_urls
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.errors import BadWebhookUrl, TooManyRules
from gatehouse.platform.operations.alerts.evaluation import evaluate
from gatehouse.platform.operations.alerts.schemas import AlertRuleUpdate, Evaluated, NewAlertRule, Triggered
from gatehouse.platform.operations.alerts.table import AlertRuleRow
from gatehouse.platform.requests import Apart

#: Rules an organization may have.
MOST: Final = 200


async def check(parts: Apart, receivers: Receivers, url: str | None) -> None:
    """Raises `BadWebhookUrl`, without having connected anywhere."""
    if reason := await receiver_urls.fault(parts, receivers, url, kind="alert_rule"):
        raise BadWebhookUrl(reason)


async def create(change: Change, body: NewAlertRule) -> AlertRuleRow:
    """Raises `TooManyRules`."""
    await require_room(change.session, ScopedLock.ALERTS, table.count_rules, limit=MOST, full=TooManyRules)
    now, values = utc_now(), body.model_dump()
    row = AlertRuleRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    # Not the URL: that of many a receiver holds its secret.
    values["webhook_url"] = _told(body.webhook_url)
    change.record("alert_rule.created", "alert_rule", row.id, alert_rule=values)
    return row


def update(change: Change, row: AlertRuleRow, body: AlertRuleUpdate) -> AlertRuleRow:
    """A cooldown goes on as long as the rule says now."""
    sent = body.sent()
    changed = {name: value for name, value in sent.items() if getattr(row, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(row, name, value)
        # What it says now is looked at as soon as can be.
        row.updated_at, row.evaluated_at = utc_now(), None
        if "webhook_url" in changed:
            changed["webhook_url"] = _told(row.webhook_url)
        change.record("alert_rule.updated", "alert_rule", row.id, name=row.name, changed=changed)
    return row


async def delete(change: Change, row: AlertRuleRow) -> None:
    """Its history goes with it."""
    await change.session.delete(row)
    change.record("alert_rule.deleted", "alert_rule", row.id, name=row.name)


async def evaluate_now(change: Change, now: float) -> Evaluated:
    """All enabled rules at the Unix time `now`."""
    found = await evaluate(change, now)
    change.record("alert_rule.evaluated", "alert_rule", rules=found.evaluated, triggered=len(found.triggered))
    return Evaluated(
        rules_evaluated=found.evaluated,
        rules_triggered=len(found.triggered),
        triggered=[
            Triggered(rule_id=each.rule_id, rule_name=each.rule_name, metric_value=each.metric_value)
            for each in found.triggered
        ],
    )


def _told(url: str | None) -> str | None:
    """What the audit chain says of a URL: its host."""
    return url and f"https://{urlsplit(url).hostname}"
