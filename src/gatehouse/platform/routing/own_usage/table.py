"""Queries of a user's own usage and of the budgets that apply to their calls."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

#: Rows by day, rows by model, and the total, from one scan of the user's records by their index.
_TOTALS: Final = text(
    "SELECT grouping(day) = 0 AS by_day, grouping(provider) = 0 AS by_model, day, provider, model_id,"
    " count(*) AS requests, count(*) FILTER (WHERE status = 'refused') AS refused,"
    " count(*) FILTER (WHERE dlp_action = 'REDACT') AS redacted,"
    " coalesce(sum(input_tokens), 0)::bigint AS input_tokens,"
    " coalesce(sum(output_tokens), 0)::bigint AS output_tokens,"
    " coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens, coalesce(sum(cost_usd), 0) AS cost_usd"
    " FROM (SELECT *, (timestamp AT TIME ZONE :zone)::date AS day FROM usage_records"
    " WHERE tenant_id = :tenant AND user_id = :user AND timestamp >= :since) AS own"
    " GROUP BY GROUPING SETS ((day), (provider, model_id), ())"
    " ORDER BY cost_usd DESC, requests DESC, provider, model_id"
)
# Budgets of disabled or expired keys are left out, because no call can use these keys.
_BUDGETS: Final = text(
    "SELECT b.id, coalesce(g.name, k.description, t.name) AS scope_name FROM budgets b"
    " LEFT JOIN tenants t ON b.scope_type = 'tenant' AND t.id = b.tenant_id"
    " LEFT JOIN groups g ON b.scope_type = 'group' AND g.tenant_id = b.tenant_id AND g.id = b.scope_id"
    " LEFT JOIN api_keys k ON b.scope_type = 'api_key' AND k.tenant_id = b.tenant_id AND k.id = b.scope_id"
    " WHERE b.tenant_id = :tenant AND (b.scope_type = 'tenant'"
    " OR (b.scope_type = 'user' AND b.scope_id = :user)"
    " OR (b.scope_type = 'group' AND b.scope_id = ANY (CAST(:groups AS uuid[])))"
    " OR (k.user_id = :user AND k.is_enabled AND (k.expires_at IS NULL OR k.expires_at > now())))"
    " ORDER BY array_position('{user,api_key,group,tenant}', b.scope_type), b.period, scope_name, b.id"
)
_ORGANIZATION: Final = text("SELECT name, timezone, monthly_request_limit FROM tenants WHERE id = :tenant")


class Organization(NamedTuple):
    name: str
    timezone: str
    #: the limit of the organization's plan; None is unlimited
    monthly_request_limit: int | None


class TotalsRow(NamedTuple):
    """The totals of a day if `by_day` is true, of a model if `by_model` is true, else of the whole period."""

    by_day: bool
    by_model: bool
    day: date | None
    provider: str | None
    model_id: str | None
    requests: int
    refused: int
    redacted: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: Any


async def organization(session: AsyncSession) -> Organization:
    return Organization(*(await session.execute(_ORGANIZATION, {"tenant": session.info["tenant_id"]})).one())


async def totals(session: AsyncSession, user_id: UUID, since: datetime, zone: str) -> list[TotalsRow]:
    """Return the user's totals since the moment, those with the highest cost first."""
    values = {"tenant": session.info["tenant_id"], "user": user_id, "since": since, "zone": zone}
    return [TotalsRow(*row) for row in await session.execute(_TOTALS, values)]


async def budgets_of(session: AsyncSession, user_id: UUID, groups: Sequence[UUID]) -> Sequence[Row[Any]]:
    """Return `id` and `scope_name` of the budgets that apply to calls of the user or of one of their keys."""
    values = {"tenant": session.info["tenant_id"], "user": user_id, "groups": list(groups)}
    return (await session.execute(_BUDGETS, values)).all()
