"""Evaluation by schedule. Every machine that works on jobs looks for what is due; a rule is one machine's at a time."""

from datetime import UTC, datetime, timedelta
from typing import Final

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.change import Change
from gatehouse.platform.jobs import Tools
from gatehouse.platform.operations.alerts import table
from gatehouse.platform.operations.alerts.evaluation import evaluate

#: Rules taken on at once.
_MOST: Final = 200


async def run_due(tools: Tools) -> None:
    """Evaluates every rule that was not for ALERT_EVALUATION_INTERVAL_SECONDS, and new ones."""
    interval = timedelta(seconds=tools.settings.alert_evaluation_interval_seconds)
    while True:
        now = tools.clock.now()
        async with tools.database.service() as session:
            due = await table.claim_due(session, datetime.fromtimestamp(now, UTC), interval, _MOST)
            await session.commit()
        failed: Exception | None = None
        for tenant_id, rules in due.items():
            try:
                async with tools.database.tenant(TenantId(tenant_id)) as session:
                    change = Change(session, None, tenant_id=TenantId(tenant_id))
                    await evaluate(change, now, rules)
                    await change.commit()
            except Exception as error:
                # One organization's must not keep the others' waiting. Its own are due again after the interval.
                failed = error
        if failed is not None:
            raise failed
        if sum(map(len, due.values())) < _MOST:
            return
