"""Evaluates alert rules by schedule on every machine that runs jobs. Each rule is evaluated by one machine at a
time."""

from datetime import UTC, datetime, timedelta
from typing import Final

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes.change import Change
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.evaluation import evaluate

#: Number of rules claimed by one query.
_RULES_PER_QUERY: Final = 200


async def run_due(tools: Tools) -> None:
    """Evaluate new rules, and every rule that was not evaluated for ALERT_EVALUATION_INTERVAL_SECONDS.

    If the rules of an organization fail, the rules of other organizations are still evaluated, and the last error is
    raised afterwards.
    """
    interval = timedelta(seconds=tools.settings.alert_evaluation_interval_seconds)
    while True:
        now = tools.clock.now()
        async with tools.database.service() as session:
            due = await table.claim_due(session, datetime.fromtimestamp(now, UTC), interval, _RULES_PER_QUERY)
            await session.commit()
        last_error: Exception | None = None
        for tenant_id, rules in due.items():
            try:
                async with tools.database.tenant(TenantId(tenant_id)) as session:
                    change = Change(session, None, tenant_id=TenantId(tenant_id))
                    await evaluate(change, now, rules)
                    await change.commit()
            except Exception as error:
                # An error in one organization must not delay the others. The rules of the failed organization are due
                # again after the interval.
                last_error = error
        if last_error is not None:
            raise last_error
        if sum(map(len, due.values())) < _RULES_PER_QUERY:
            return
