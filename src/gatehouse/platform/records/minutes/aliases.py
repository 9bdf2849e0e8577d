"""Totals of the requests of model aliases, by alias or deployment."""

from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.records.minutes.table import Totals

AliasPart: TypeAlias = Literal["model_alias", "deployment"]
#: Maximum number of aliases or deployments in a result, those with the most requests first.
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
