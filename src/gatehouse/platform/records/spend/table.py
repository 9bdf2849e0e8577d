"""The queries for a page of spend, for the costs of API keys, and for the number of usage records."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Date,
    Numeric,
    Select,
    TextClause,
    Uuid,
    column,
    exists,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.emails import PLACEHOLDER_SUFFIX
from gatehouse.foundation.http.lists import PageWindow


def _record_counts(name: str) -> Select[Any]:
    return select(
        *table(
            name, column("tenant_id", Uuid()), column("day", Date()), column("group_id", Uuid()),
            column("user_id", Uuid()), column("api_key_id", Uuid()), column("records", BigInteger()),
            column("cost_usd", Numeric()),
        ).c
    )  # fmt: skip


#: The number of usage records in the database, and their cost, by group, user, API key and day (UTC). A combination may
#: have several rows.
record_counts: Final = union_all(_record_counts("spend_days"), _record_counts("spend_deltas")).subquery()

_deltas: Final = _record_counts("spend_deltas").selected_columns
#: The cost of each API key by month (UTC), without the changes in `spend_deltas`.
_key_months: Final = table(
    "spend_key_months", column("tenant_id", Uuid()), column("month", Date()), column("api_key_id", Uuid()),
    column("cost_usd", Numeric()),
)  # fmt: skip

#: For each grouping: the column with the id, and the query of the names.
_COLUMNS: Final[Mapping[str, str]] = {"group": "group_id", "user": "user_id", "api_key": "api_key_id"}
_NAMES: Final[Mapping[str, str]] = {
    "group": "SELECT id, name, NULL::uuid AS user_id FROM groups WHERE tenant_id = :tenant",
    "user": "SELECT id, coalesce(display_name, CASE WHEN email NOT LIKE :placeholder THEN email END, username) AS name,"
    " NULL::uuid AS user_id FROM users WHERE tenant_id = :tenant",
    "api_key": "SELECT id, description AS name, user_id FROM api_keys WHERE tenant_id = :tenant",
}
_SORT_COLUMNS: Final = {"cost_usd": "cost_usd", "requests": "requests", "tokens": "tokens", "name": "lower(name)"}
_SUMS: Final = (
    "sum(requests)::bigint AS requests, sum(input_tokens)::bigint AS input_tokens,"
    " sum(output_tokens)::bigint AS output_tokens, sum(cached_tokens)::bigint AS cached_tokens,"
    " sum(cost_usd) AS cost_usd"
)
_DAYS: Final = (
    "tenant_id = :tenant AND day BETWEEN :since AND :until"
    " AND (CAST(:user_id AS uuid) IS NULL OR user_id = :user_id)"
    " AND (CAST(:group_id AS uuid) IS NULL OR group_id = :group_id)"
)


_KEYS: Final = "tenant_id = :tenant AND api_key_id = ANY(:keys) AND day >= :since"
_COSTS_OF_KEYS: Final = text(
    "SELECT api_key_id, sum(cost_usd) AS cost FROM ("  # noqa: S608
    f"SELECT api_key_id, cost_usd FROM spend_days WHERE {_KEYS}"
    f" UNION ALL SELECT api_key_id, cost_usd FROM spend_deltas WHERE {_KEYS}) AS days GROUP BY 1"
)


class SpendFilters(NamedTuple):
    """Filters of the list. `since` and `until` are the first and the last day (UTC). An id that is None matches
    everything."""

    since: date
    until: date
    user_id: UUID | None = None
    group_id: UUID | None = None


class SpendRow(NamedTuple):
    id: UUID | None
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: Decimal
    name: str | None
    user_id: UUID | None


class SpendSums(NamedTuple):
    """The number of items, and the totals of all of them."""

    items: int
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: Decimal


@cache
def _query(by: str, sort: str) -> TextClause:
    name, direction = sort.removeprefix("-"), "DESC" if sort.startswith("-") else "ASC"
    order = f"{_SORT_COLUMNS[name]} {direction} NULLS LAST, id {direction} NULLS LAST"
    # All names are read only if the list is sorted by them.
    named = f"LEFT JOIN ({_NAMES[by]}) AS names USING (id)"
    before, after = (named, "") if name == "name" else ("", named)
    return text(f"""
WITH days AS (
    SELECT * FROM spend_days WHERE {_DAYS} UNION ALL SELECT * FROM spend_deltas WHERE {_DAYS}
), items AS MATERIALIZED (
    SELECT {_COLUMNS[by]} AS id, {_SUMS}, sum(input_tokens + output_tokens + cached_tokens) AS tokens
    FROM days GROUP BY 1 HAVING sum(requests) > 0
), sums AS (
    SELECT count(*) AS items, coalesce(sum(requests), 0)::bigint, coalesce(sum(input_tokens), 0)::bigint,
        coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cached_tokens), 0)::bigint, coalesce(sum(cost_usd), 0)
    FROM items
), page AS (
    SELECT * FROM items {before} ORDER BY {order} LIMIT :limit OFFSET :offset
)
SELECT sums.*, page.requests IS NOT NULL, id, page.requests, page.input_tokens,
    page.output_tokens, page.cached_tokens, page.cost_usd, name, user_id
FROM sums LEFT JOIN (SELECT * FROM page {after}) AS page ON true ORDER BY {order}
""")  # noqa: S608


async def page(
    session: AsyncSession, window: PageWindow, by: str, sort: str, filters: SpendFilters
) -> tuple[list[SpendRow], SpendSums]:
    """Return the items of the window, and the totals of all items. `by` is `group`, `user` or `api_key`. `sort` is a
    name of `_SORT_COLUMNS`, with a leading minus for descending order."""
    values = {
        "tenant": session.info["tenant_id"], "placeholder": f"%{PLACEHOLDER_SUFFIX}", "limit": window.limit,
        "offset": window.offset, **filters._asdict(),
    }  # fmt: skip
    rows = (await session.execute(_query(by, sort), values)).all()
    width = len(SpendSums._fields)
    # An empty page has one row, which contains only the totals.
    return [SpendRow(*row[width + 1 :]) for row in rows if row[width]], SpendSums(*rows[0][:width])


async def costs_of_keys(session: AsyncSession, keys: Sequence[UUID], since: date) -> dict[UUID, Decimal]:
    """Return the cost of each API key's requests since a day (UTC). Keys without requests are left out."""
    values = {"tenant": session.info["tenant_id"], "keys": list(keys), "since": since}
    rows = (await session.execute(_COSTS_OF_KEYS, values)).all()
    return {row.api_key_id: row.cost for row in rows}


def keys_by_cost(
    tenant_id: UUID, keys: Select[UUID], month: date, *, descending: bool, max_rows: int | None
) -> Select[UUID]:
    """Return the query of the first `max_rows` API keys among the ids of a query. The keys are sorted by the cost of
    their requests since the first day of the month (UTC), and then by id. The query has three parts: keys with cost,
    keys whose cost has just changed, and keys without cost. With `max_rows`, the first and the last part are read in
    the order of an index, which is fast if many keys match."""

    def first(query: Select[Any], cost: ColumnElement[Any], key_id: ColumnElement[UUID]) -> Select[Any]:
        order = (cost.desc(), key_id.desc()) if descending else (cost.asc(), key_id.asc())
        return query.order_by(*order).limit(max_rows)

    key = keys.subquery().c
    changed = (
        select(_deltas.api_key_id, func.sum(_deltas.cost_usd).label("cost_usd"))
        .where(_deltas.tenant_id == tenant_id, _deltas.day >= month, _deltas.api_key_id.is_not(None))
        .group_by(_deltas.api_key_id)
        .cte("changed")
    )
    costs = select(_key_months).where(_key_months.c.tenant_id == tenant_id, _key_months.c.month == month).subquery().c
    earlier_cost = select(costs.cost_usd).where(costs.api_key_id == key.id).scalar_subquery()
    changed_cost = func.coalesce(earlier_cost, 0) + changed.c.cost_usd
    unchanged = key.id.not_in(select(changed.c.api_key_id))
    zero = literal(Decimal(), Numeric())
    with_cost = select(key.id, costs.cost_usd).where(costs.api_key_id == key.id, unchanged)
    spent = first(with_cost, costs.cost_usd, costs.api_key_id).cte("spent")
    without_cost = select(key.id, zero.label("cost_usd")).where(~exists().where(costs.api_key_id == key.id), unchanged)
    if descending and max_rows is not None:
        # Keys without cost come last, and are not read if the rows before them are enough.
        without_cost = without_cost.where(select(func.count()).select_from(spent).scalar_subquery() < max_rows)
    parts = union_all(
        select(spent),
        select(key.id, changed_cost).where(changed.c.api_key_id == key.id),
        first(without_cost, literal_column("cost_usd"), key.id),
    ).subquery()
    return first(select(parts.c.id), parts.c.cost_usd, parts.c.id)
