"""Evaluates the conditions of alert rules, and triggers the rules whose condition is met."""

import operator
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.table import AlertHistoryRow, AlertRuleRow
from gatehouse.platform.records.minutes.latency import percentile
from gatehouse.platform.records.minutes.table import Totals, latencies, totals

_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "gt": operator.gt, "lt": operator.lt, "gte": operator.ge, "lte": operator.le,
}  # fmt: skip
#: Computes each metric from the totals of a window. Returns None if the metric is undefined.
_METRICS: Final[dict[str, Callable[[Totals], float | None]]] = {
    "cost": lambda window: float(window.cost_usd),
    "error_rate": lambda window: 100 * window.errors / window.requests if window.requests else None,
    "dlp_trigger_count": lambda window: float(window.dlp_triggers),
    "blocked_request_count": lambda window: float(window.blocked),
}
_MINUTE: Final = timedelta(minutes=1)


class AlertEvaluation(NamedTuple):
    """The result of an evaluation: the number of evaluated rules, and the history rows of the triggered rules."""

    evaluated: int
    triggered: list[AlertHistoryRow]


async def evaluate(change: Change, now: float, rules: Sequence[UUID] | None = None) -> AlertEvaluation:
    """Evaluate the enabled rules of the change's tenant at the Unix time `now`. If `rules` is not None, evaluates only
    those."""
    moment = datetime.fromtimestamp(now, UTC)
    metrics = _MetricReader(change.session, moment)
    evaluated = await table.enabled(change.session, rules)
    triggered = []
    for rule in evaluated:
        value = await metrics.value(rule)
        if value is None or not _COMPARISONS[rule.comparison](value, rule.threshold) or _in_cooldown(rule, moment):
            continue
        triggered.append(_trigger(change, rule, value, moment))
    return AlertEvaluation(len(evaluated), triggered)


class _MetricReader:
    """Reads the metrics of a window once for all rules that use this window."""

    def __init__(self, session: AsyncSession, moment: datetime) -> None:
        self._session = session
        # A window consists of the current minute and the `window_minutes` before it, so it is never shorter than the
        # rule requires.
        self._until = moment.replace(second=0, microsecond=0) + _MINUTE
        self._totals: dict[int, Totals] = {}
        self._p95: dict[int, float | None] = {}

    async def value(self, rule: AlertRuleRow) -> float | None:
        """Return the value of the rule's metric over its window, or None if it is undefined."""
        minutes = rule.window_minutes
        since = self._until - _MINUTE * (minutes + 1)
        if rule.metric_type == "latency_p95":
            if minutes not in self._p95:
                self._p95[minutes] = percentile(await latencies(self._session, since, self._until), 0.95)
            return self._p95[minutes]
        if minutes not in self._totals:
            self._totals[minutes] = await totals(self._session, since, self._until)
        return _METRICS[rule.metric_type](self._totals[minutes])


def _in_cooldown(rule: AlertRuleRow, moment: datetime) -> bool:
    triggered_at = rule.last_triggered_at
    return triggered_at is not None and moment < triggered_at + _MINUTE * rule.cooldown_minutes


def _trigger(change: Change, rule: AlertRuleRow, value: float, moment: datetime) -> AlertHistoryRow:
    rule.last_triggered_at = moment
    record = AlertHistoryRow(
        id=new_id(),
        tenant_id=rule.tenant_id,
        rule_id=rule.id,
        rule_name=rule.name,
        metric_type=rule.metric_type,
        metric_value=value,
        threshold=rule.threshold,
        comparison=rule.comparison,
        triggered_at=moment,
        webhook_url=rule.webhook_url,
        webhook_delivered=False,
    )
    change.session.add(record)
    change.record(
        "alert_rule.triggered",
        "alert_rule",
        rule.id,
        name=rule.name,
        metric_type=rule.metric_type,
        metric_value=value,
        comparison=rule.comparison,
        threshold=rule.threshold,
    )
    return record
