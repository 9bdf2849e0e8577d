"""Rows and queries of alerts."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import Float, Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow


class AlertRuleRow(TenantRow):
    __tablename__ = "alert_rules"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    metric_type: Mapped[str]
    threshold: Mapped[float] = mapped_column(Float(53))
    comparison: Mapped[str]
    window_minutes: Mapped[int]
    webhook_url: Mapped[str | None]
    enabled: Mapped[bool]
    cooldown_minutes: Mapped[int]
    last_triggered_at: Mapped[datetime | None]
    evaluated_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class AlertHistoryRow(TenantRow):
    __tablename__ = "alert_history"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    rule_id: Mapped[UUID]
    rule_name: Mapped[str]
    metric_type: Mapped[str]
    metric_value: Mapped[float] = mapped_column(Float(53))
    threshold: Mapped[float] = mapped_column(Float(53))
    comparison: Mapped[str]
    triggered_at: Mapped[datetime]
    webhook_url: Mapped[str | None]
    webhook_attempted_at: Mapped[datetime | None]
    webhook_delivered: Mapped[bool]
    webhook_error: Mapped[str | None]


class AlertNotification(NamedTuple):
    """A notification to send, with the values that the rule had when it triggered."""

    id: UUID
    tenant_id: UUID
    rule_id: UUID
    rule_name: str
    metric_type: str
    metric_value: float
    threshold: float
    comparison: str
    triggered_at: datetime
    webhook_url: str


# One process claims the rules. Other processes skip the locked rows, and afterwards do not find them due.
_CLAIM_DUE: Final = text(
    "UPDATE alert_rules SET evaluated_at = :now WHERE id IN (SELECT id FROM alert_rules"
    " WHERE enabled AND (evaluated_at IS NULL OR evaluated_at <= :due)"
    " AND EXISTS (SELECT FROM tenants t WHERE t.id = tenant_id AND t.deleted_at IS NULL)"
    " ORDER BY evaluated_at NULLS FIRST LIMIT :max_rows FOR UPDATE SKIP LOCKED) RETURNING tenant_id, id"
)
# A notification is marked before it is sent, so that there is only one attempt even if the process is killed during it.
_CLAIM_UNSENT: Final = text(
    "UPDATE alert_history SET webhook_attempted_at = :now WHERE id IN (SELECT id FROM alert_history"
    " WHERE webhook_url IS NOT NULL AND webhook_attempted_at IS NULL"
    " AND tenant_id <> ALL(CAST(:without AS uuid[])) ORDER BY triggered_at LIMIT :max_rows FOR UPDATE SKIP LOCKED)"
    " RETURNING id, tenant_id, rule_id, rule_name, metric_type, metric_value, threshold, comparison, triggered_at,"
    " webhook_url"
)
_SET_RESULT: Final = text(
    "UPDATE alert_history SET webhook_delivered = CAST(:error AS text) IS NULL, webhook_error = :error WHERE id = :id"
)


def list_query(*, search: str | None, enabled: bool | None, metric_type: str | None, sort: str) -> Select[AlertRuleRow]:
    """Return the query of rules by part of the name, state and metric."""
    query = containing(select(AlertRuleRow), search, AlertRuleRow.name)
    if enabled is not None:
        query = query.where(AlertRuleRow.enabled.is_(enabled))
    if metric_type is not None:
        query = query.where(AlertRuleRow.metric_type == metric_type)
    columns = {
        "name": AlertRuleRow.name,
        "created_at": AlertRuleRow.created_at,
        "last_triggered_at": AlertRuleRow.last_triggered_at,
    }
    return sorted_by(query, sort, columns, unique=AlertRuleRow.id)


def history(rule_id: UUID) -> Select[AlertHistoryRow]:
    """Return the query for a rule's history, newest first."""
    return (
        select(AlertHistoryRow)
        .where(AlertHistoryRow.rule_id == rule_id)
        .order_by(AlertHistoryRow.triggered_at.desc(), AlertHistoryRow.id.desc())
    )


async def count_rules(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(AlertRuleRow))).scalar_one()


async def enabled(session: AsyncSession, rules: Sequence[UUID] | None) -> Sequence[AlertRuleRow]:
    """Return the tenant's enabled rules. If `rules` is not None, returns only those among them. The rows are locked, so
    that concurrent evaluations cannot trigger a rule twice."""
    query = select(AlertRuleRow).where(AlertRuleRow.enabled).order_by(AlertRuleRow.id).with_for_update()
    if rules is not None:
        query = query.where(AlertRuleRow.id.in_(rules))
    return (await session.scalars(query)).all()


async def claim_due(session: AsyncSession, now: datetime, interval: timedelta, limit: int) -> dict[UUID, list[UUID]]:
    """Claim up to `limit` rules that were not evaluated for `interval`. Returns their ids by tenant. The session must
    have the service role."""
    by_tenant: dict[UUID, list[UUID]] = {}
    for tenant_id, rule_id in await session.execute(_CLAIM_DUE, {"now": now, "due": now - interval, "max_rows": limit}):
        by_tenant.setdefault(tenant_id, []).append(rule_id)
    return by_tenant


async def claim_unsent(
    session: AsyncSession, now: datetime, limit: int, excluded_tenants: Iterable[UUID] = ()
) -> list[AlertNotification]:
    """Claim up to `limit` notifications, the oldest first. Notifications of `excluded_tenants` are skipped. The session
    must have the service role."""
    values = {"now": now, "max_rows": limit, "without": list(excluded_tenants)}
    return [AlertNotification(*row) for row in await session.execute(_CLAIM_UNSENT, values)]


async def set_result(session: AsyncSession, record_id: UUID, error: str | None) -> None:
    """Record the result of a notification. `error` is None if the receiver accepted it. The session must have the
    service role."""
    await session.execute(_SET_RESULT, {"id": record_id, "error": error})
