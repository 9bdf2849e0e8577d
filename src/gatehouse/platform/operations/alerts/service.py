"""The rules of alert rules."""

from typing import Final

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.egress import EgressGuard, UnsafeUrl
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import Settings
from gatehouse.platform.change import Change
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.errors import BadWebhookUrl, TooManyRules
from gatehouse.platform.operations.alerts.evaluation import evaluate
from gatehouse.platform.operations.alerts.schemas import AlertRuleUpdate, Evaluated, NewAlertRule, Triggered
from gatehouse.platform.operations.alerts.table import AlertRuleRow

#: Rules an organization may have.
MOST: Final = 200


async def create(change: Change, body: NewAlertRule, settings: Settings) -> AlertRuleRow:
    """Raises `BadWebhookUrl`, `TooManyRules`."""
    _check(body.webhook_url, settings)
    if await table.count_rules(change.session) >= MOST:
        raise TooManyRules
    now, values = utc_now(), body.model_dump()
    row = AlertRuleRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    change.record("alert_rule.created", "alert_rule", row.id, alert_rule=values)
    return row


async def update(change: Change, row: AlertRuleRow, body: AlertRuleUpdate, settings: Settings) -> AlertRuleRow:
    """A cooldown goes on as long as the rule says now. Raises `BadWebhookUrl`."""
    sent = body.sent()
    _check(sent.get("webhook_url"), settings)
    changed = {name: value for name, value in sent.items() if getattr(row, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(row, name, value)
        # What it says now is looked at as soon as can be.
        row.updated_at, row.evaluated_at = utc_now(), None
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


def _check(url: str | None, settings: Settings) -> None:
    """Looks up no name, since the database waits meanwhile: where it leads is judged whenever something is sent."""
    if url is None:
        return
    try:
        EgressGuard(settings.egress_allowlist).check(url)
    except UnsafeUrl as error:
        raise BadWebhookUrl(error.reason) from None
