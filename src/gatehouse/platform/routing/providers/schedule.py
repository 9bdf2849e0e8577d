"""The scheduled health checks of all organizations. The keeper calls `run_due` every few seconds.

Several keepers may run at once: each provider is claimed by writing its `last_health_check`, so that it is checked once
per interval. Providers that are disabled, kill-switched or without their required credentials are not checked.
"""

import asyncio
from typing import Final

import structlog
from sqlalchemy import select, text, tuple_, update
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.providers.health import next_health
from gatehouse.platform.routing.providers.probe import Prober
from gatehouse.platform.routing.providers.service import health_values, record_transition
from gatehouse.platform.routing.providers.table import NEED_CREDENTIALS, ProviderRow

log = structlog.get_logger(__name__)

#: Maximum number of checks that run concurrently. No more are claimed at once, so that no check waits for another one
#: that hangs.
MAX_CONCURRENT_CHECKS: Final = 64

_CLAIM = text(
    "UPDATE providers SET last_health_check = now() FROM ("
    " SELECT p.tenant_id, p.id FROM providers p JOIN tenants t ON t.id = p.tenant_id AND t.deleted_at IS NULL"
    " WHERE p.enabled AND COALESCE((p.health_config->>'enabled')::boolean, true)"
    " AND (p.last_health_check IS NULL OR p.last_health_check <= now()"
    "      - make_interval(secs => COALESCE((p.health_config->>'interval_seconds')::float8, 30)))"
    " AND (p.credentials_updated_at IS NOT NULL OR p.kind <> ALL(:need_credentials))"
    " AND NOT EXISTS (SELECT FROM provider_kill_switches s WHERE s.tenant_id = p.tenant_id AND s.provider = p.id)"
    " AND (NOT EXISTS (SELECT FROM model_configs m WHERE m.tenant_id = p.tenant_id AND m.provider = p.id)"
    "      OR EXISTS (SELECT FROM model_configs m WHERE m.tenant_id = p.tenant_id AND m.provider = p.id"
    "                 AND m.kill_switch_disabled_at IS NULL))"
    " ORDER BY p.last_health_check NULLS FIRST LIMIT :max_rows FOR UPDATE OF p SKIP LOCKED"
    ") due WHERE providers.tenant_id = due.tenant_id AND providers.id = due.id"
    " RETURNING providers.tenant_id, providers.id"
)


async def run_due(database: Database, outbound: Outbound, sealer: Sealer, *, limit: int = MAX_CONCURRENT_CHECKS) -> int:
    """Run up to `limit` checks that are due and return their number. If it is `limit`, more may be due."""
    async with database.service() as session:
        values = {"max_rows": limit, "need_credentials": [*NEED_CREDENTIALS]}
        claimed = (await session.execute(_CLAIM, values)).tuples().all()
        # The rows are read by a second query, because they include the organization's egress policy, which is in
        # another table.
        rows = select(ProviderRow).where(tuple_(ProviderRow.tenant_id, ProviderRow.id).in_(claimed))
        due = (await session.scalars(rows)).all() if claimed else []
        await session.commit()
    prober = Prober(outbound, sealer)
    results = await asyncio.gather(*(_check(database, prober, row) for row in due), return_exceptions=True)
    for row, result in zip(due, results, strict=True):
        if isinstance(result, Exception):
            log.error("health_check.failed", tenant_id=str(row.tenant_id), provider_id=row.id, exc_info=result)
    return len(due)


async def _check(database: Database, prober: Prober, row: ProviderRow) -> None:
    """Check a provider and store the result with one statement, because there may be thousands. `row` is the provider
    when it was claimed. If the provider was changed or checked since then, the result is discarded."""
    outcome = await prober.check(row.tenant_id, row.record, row.checks.timeout_ms)
    health = next_health(row.health, outcome, row.checks)
    unchanged = {
        name: getattr(row, name)
        for name in ("tenant_id", "id", "updated_at", "consecutive_failures", "consecutive_successes")
    }
    statement = (
        update(ProviderRow).filter_by(**unchanged).values(health_values(health, outcome)).returning(ProviderRow.id)
    )
    try:
        async with database.service() as session:
            if (await session.execute(statement, execution_options={"synchronize_session": False})).first() is None:
                return
            change = Change(session, None, tenant_id=row.tenant_id)
            if health.unhealthy != row.unhealthy:
                record_transition(change, row, outcome, unhealthy=health.unhealthy)
            await change.commit()
    except SQLAlchemyError as error:
        log.warning("health_check.not_noted", provider_id=row.id, reason=type(error).__name__)
