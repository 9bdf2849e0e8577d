"""Creates the monthly invoice of each organization, and announces `invoice_generated` (docs/budgets.md)."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import iso
from gatehouse.foundation.ids import new_id
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.policy.periods import PeriodSpan, span

#: Time between the end of a month and the creation of its invoice. Records may be stored late after an outage.
_DELAY_SECONDS: Final = 3600
#: Maximum time after the end of a month at which its invoice is created. Later, the records may have been removed.
_MAX_DELAY_SECONDS: Final = 10 * 86_400

_TENANTS: Final = text("SELECT id, timezone FROM tenants ORDER BY id")
_EXISTS: Final = text("SELECT FROM invoices WHERE tenant_id = :tenant AND period = :period")
_ITEMS: Final = text(
    "SELECT model_id, count(*) AS requests, coalesce(sum(cost_usd), 0) AS cost_usd FROM usage_records"
    " WHERE tenant_id = :tenant AND timestamp >= :first AND timestamp < :last AND model_id IS NOT NULL"
    " GROUP BY model_id ORDER BY cost_usd DESC, model_id"
)
_STORE: Final = text(
    "INSERT INTO invoices (id, tenant_id, period, total_usd, line_items, generated_at)"
    " VALUES (:id, :tenant, :period, :total, CAST(:items AS jsonb), :at) ON CONFLICT DO NOTHING RETURNING id"
)
_ANNOUNCE: Final = text(
    "INSERT INTO outbox (id, tenant_id, event_type, payload)"
    " VALUES (:id, :tenant, 'invoice_generated', CAST(:payload AS jsonb))"
)


@JOBS.scheduled("spending.invoices", every_seconds=3600, offset_seconds=23 * 60)
async def invoices(tools: Tools) -> None:
    """Create the invoices that are due. Each invoice is created once. A month ends at midnight in the organization's
    time zone."""
    now = tools.clock.now()
    async with tools.database.service() as session:
        tenants = (await session.execute(_TENANTS)).all()
    for tenant_id, timezone in tenants:
        zone = ZoneInfo(timezone)
        current = span("month", now, zone)
        if _DELAY_SECONDS <= now - current.start <= _MAX_DELAY_SECONDS:
            async with tools.database.service() as session:
                await _invoice(session, tenant_id, span("month", current.start - 1, zone), zone, now)


async def _invoice(session: AsyncSession, tenant_id: UUID, month: PeriodSpan, zone: ZoneInfo, now: float) -> None:
    period = datetime.fromtimestamp(month.start, zone).strftime("%Y-%m")
    if (await session.execute(_EXISTS, {"tenant": tenant_id, "period": period})).first() is not None:
        return
    interval = {"first": datetime.fromtimestamp(month.start, UTC), "last": datetime.fromtimestamp(month.end, UTC)}
    rows = (await session.execute(_ITEMS, {"tenant": tenant_id, **interval})).all()
    if not rows:
        # There is no invoice for a month without usage.
        return
    total = sum((row.cost_usd for row in rows), Decimal(0))
    items = [{"model_id": row.model_id, "requests": row.requests, "cost_usd": float(row.cost_usd)} for row in rows]
    invoice_id = new_id()
    values: dict[str, Any] = {
        "id": invoice_id, "tenant": tenant_id, "period": period, "total": total,
        "items": msgspec.json.encode(items).decode(), "at": datetime.fromtimestamp(now, UTC),
    }  # fmt: skip
    if (await session.execute(_STORE, values)).first() is None:
        return
    payload = {
        "invoice_id": str(invoice_id), "org_id": str(tenant_id), "period": period, "total_usd": float(total),
        "line_items": items, "generated_at": iso(now),
    }  # fmt: skip
    await session.execute(
        _ANNOUNCE, {"id": new_id(), "tenant": tenant_id, "payload": msgspec.json.encode(payload).decode()}
    )
    await session.commit()
