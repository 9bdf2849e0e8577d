"""Totals of the requests of model aliases, by alias or deployment."""

from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import PageWindow
from gatehouse.platform.records.minutes.table import Totals

AliasPart: TypeAlias = Literal["model_alias", "deployment"]
#: Maximum number of aliases or deployments with a series, those with the most requests first.
MAX_PARTS: Final = 50
MAX_COUNTS: Final = 200

_SUMS: Final = (
    "sum(requests)::bigint AS requests, sum(errors)::bigint, sum(blocked)::bigint, sum(dlp_triggers)::bigint,"
    " sum(cost_usd)"
)
_SERIES: Final = text(
    f"SELECT date_trunc(:step, hour, 'UTC') AS start, {_SUMS} FROM alias_hours"  # noqa: S608
    " WHERE tenant_id = :tenant AND hour >= :since AND model_alias = :alias GROUP BY 1"
)
_PARTS: Final = text(f"""
WITH points AS (
    SELECT model_alias, CASE WHEN :whole THEN NULL ELSE provider END AS provider,
        CASE WHEN :whole THEN NULL ELSE model_id END AS model_id, NOT :whole AND shadow AS shadow,
        date_trunc(:step, hour, 'UTC') AS start, {_SUMS}
    FROM alias_hours
    WHERE tenant_id = :tenant AND hour >= :since AND (CAST(:alias AS text) IS NULL OR model_alias = :alias)
    GROUP BY 1, 2, 3, 4, 5
), summed AS (
    SELECT *, sum(requests) OVER (PARTITION BY model_alias, provider, model_id, shadow) AS of_part FROM points
), ranked AS (
    SELECT *, dense_rank() OVER (ORDER BY of_part DESC, model_alias, provider, model_id, shadow) AS place FROM summed
)
SELECT * FROM ranked WHERE place <= :parts ORDER BY place, start
""")  # noqa: S608
_SORT_COLUMNS: Final = {
    "cost_usd": "cost_usd", "requests": "requests", "errors": "errors", "name": "lower(model_alias)",
}  # fmt: skip
_COUNTS: Final = text(
    "SELECT model_alias, provider, model_id, shadow, sum(requests)::bigint, sum(cost_usd),"
    " (sum(sum(requests)) FILTER (WHERE NOT shadow) OVER (PARTITION BY model_alias))::bigint FROM alias_hours"
    " WHERE tenant_id = :tenant AND hour >= :since"
    " AND (CAST(:policy AS text) IS NULL OR routing_policy_id = :policy)"
    " AND (CAST(:group AS uuid) IS NULL OR group_id = :group)"
    " AND provider IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 1, 2, 3, 4 LIMIT :counts"
)


class AliasSeries(NamedTuple):
    """An alias, or a deployment of one. `provider` and `model_id` are None for an alias, and for its requests that no
    deployment answered."""

    model_alias: str
    provider: str | None
    model_id: str | None
    shadow: bool


class AliasSpend(NamedTuple):
    """The totals of an alias, or of a deployment of one. `provider` and `model_id` are as in `AliasSeries`."""

    model_alias: str
    provider: str | None
    model_id: str | None
    shadow: bool
    requests: int
    errors: int
    cost_usd: Decimal


class AliasSums(NamedTuple):
    """The number of aliases or deployments, and the totals of all of them."""

    items: int
    requests: int
    errors: int
    cost_usd: Decimal


class DeploymentCount(NamedTuple):
    model_alias: str
    provider: str
    model_id: str
    shadow: bool
    requests: int
    cost_usd: Decimal
    #: requests that all deployments of the alias answered, without copies for shadows; None if there are none
    of_alias: int | None


async def series(
    session: AsyncSession, since: datetime, step: Literal["hour", "day"], alias: str
) -> dict[datetime, Totals]:
    """Return an alias's totals of each hour or day (UTC) that has requests, by the beginning of the hour or day."""
    values = {"tenant": session.info["tenant_id"], "since": since, "step": step, "alias": alias}
    return {start: Totals(*totals) for start, *totals in await session.execute(_SERIES, values)}


async def series_of_parts(
    session: AsyncSession, since: datetime, step: Literal["hour", "day"], alias: str | None, by: AliasPart
) -> dict[AliasSeries, dict[datetime, Totals]]:
    """Return the same as `series` for each alias or deployment, those with the most requests first. `alias` restricts
    them to one alias."""
    values = {
        "tenant": session.info["tenant_id"], "since": since, "step": step, "alias": alias,
        "whole": by == "model_alias", "parts": MAX_PARTS,
    }  # fmt: skip
    width = len(AliasSeries._fields)
    parts: dict[AliasSeries, dict[datetime, Totals]] = {}
    for row in await session.execute(_PARTS, values):
        totals = Totals(*row[width + 1 : width + 1 + len(Totals._fields)])
        parts.setdefault(AliasSeries(*row[:width]), {})[row[width]] = totals
    return parts


@cache
def _page_query(sort: str) -> TextClause:
    name, direction = sort.removeprefix("-"), "DESC" if sort.startswith("-") else "ASC"
    columns = (_SORT_COLUMNS[name], "model_alias", "coalesce(provider, '')", "coalesce(model_id, '')", "shadow")
    order = ", ".join(f"{column} {direction}" for column in columns)
    return text(f"""
WITH items AS MATERIALIZED (
    SELECT model_alias, CASE WHEN :whole THEN NULL ELSE provider END AS provider,
        CASE WHEN :whole THEN NULL ELSE model_id END AS model_id, NOT :whole AND shadow AS shadow,
        sum(requests)::bigint AS requests, sum(errors)::bigint AS errors, sum(cost_usd) AS cost_usd
    FROM alias_hours
    WHERE tenant_id = :tenant AND (hour AT TIME ZONE 'UTC')::date BETWEEN :since AND :until
        AND (CAST(:alias AS text) IS NULL OR model_alias = :alias)
    GROUP BY 1, 2, 3, 4
), sums AS (
    SELECT count(*) AS items, coalesce(sum(requests), 0)::bigint AS all_requests,
        coalesce(sum(errors), 0)::bigint AS all_errors, coalesce(sum(cost_usd), 0) AS all_cost
    FROM items
)
SELECT sums.*, page.* FROM sums
LEFT JOIN (SELECT * FROM items ORDER BY {order} LIMIT :limit OFFSET :offset) AS page ON true ORDER BY {order}
""")  # noqa: S608


async def page(
    session: AsyncSession, window: PageWindow, by: AliasPart, sort: str, *, since: date, until: date, alias: str | None
) -> tuple[list[AliasSpend], AliasSums]:
    """Return a page of the aliases or deployments, and the totals of all. `since` and `until` are the first and the
    last day (UTC). `sort` is a name of `_SORT_COLUMNS`, with a leading minus for descending order."""
    values = {
        "tenant": session.info["tenant_id"], "whole": by == "model_alias", "alias": alias, "since": since,
        "until": until, "limit": window.limit, "offset": window.offset,
    }  # fmt: skip
    rows = (await session.execute(_page_query(sort), values)).all()
    width = len(AliasSums._fields)
    # An empty page has one row, which contains only the totals.
    return [AliasSpend(*row[width:]) for row in rows if row[width] is not None], AliasSums(*rows[0][:width])


async def counts(
    session: AsyncSession, since: datetime, *, policy_id: UUID | None, group_id: UUID | None
) -> list[DeploymentCount]:
    """Return the requests and the cost of each deployment, those with the most requests first."""
    values = {
        "tenant": session.info["tenant_id"],
        "since": since,
        "policy": None if policy_id is None else str(policy_id),
        "group": group_id,
        "counts": MAX_COUNTS,
    }
    return [DeploymentCount(*row) for row in await session.execute(_COUNTS, values)]
