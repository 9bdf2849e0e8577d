"""What was asked of the organization's models, as the keeper counts it."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Column, Date, DateTime, Numeric, Table, Text, Uuid, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.storage.rows import Row

#: What was asked of each model a day (UTC); the keeper's to write.
model_days: Final = Table(
    "model_days",
    Row.metadata,
    Column("tenant_id", Uuid(), primary_key=True),
    Column("provider", Text(), primary_key=True),
    Column("model_id", Text(), primary_key=True),
    Column("day", Date(), primary_key=True),
    *(
        Column(name, BigInteger(), nullable=False)
        for name in ("requests", "errors", "blocked", "flagged", "input_tokens", "output_tokens")
    ),
    Column("cost_usd", Numeric(), nullable=False),
    Column("first_at", DateTime(timezone=True)),
    Column("last_at", DateTime(timezone=True)),
)

#: A model as records name it: provider, model id.
Name = tuple[str, str]


class Use(NamedTuple):
    """`requests` of today (UTC) and the 29 days before; when the model was called, None where it never was."""

    requests: int
    first_at: datetime | None
    last_at: datetime | None


UNUSED: Final = Use(0, None, None)


async def uses(
    session: AsyncSession, wanted: Collection[Name] | None = None, *, lately: int | None = None
) -> dict[Name, Use]:
    """By name, of those that were asked for anything. `wanted` None: of all models, in the registry or not. `lately`:
    only of those that were called in as many days, today (UTC) included."""
    if wanted is not None and not wanted:
        return {}
    days, today = model_days.c, utc_now().date()
    query = (
        select(
            days.provider,
            days.model_id,
            func.coalesce(func.sum(days.requests).filter(days.day > today - timedelta(days=30)), 0),
            func.min(days.first_at),
            func.max(days.last_at),
        )
        .where(days.tenant_id == session.info["tenant_id"])
        .group_by(days.provider, days.model_id)
    )
    if wanted is not None:
        query = query.where(tuple_(days.provider, days.model_id).in_(list(wanted)))
    if lately is not None:
        query = query.having(func.max(days.day).filter(days.last_at.is_not(None)) > today - timedelta(days=lately))
    return {
        (provider, model_id): Use(int(requests), first_at, last_at)
        for provider, model_id, requests, first_at, last_at in await session.execute(query)
    }


async def by_month(session: AsyncSession, name: Name) -> Sequence[Any]:
    """A model's figures by month (UTC), oldest first: `month` as its first day, and sums by the names of the table."""
    days = model_days.c
    month = func.date_trunc("month", days.day).label("month")
    sums = [
        func.sum(days[column]).label(column)
        for column in ("requests", "errors", "blocked", "flagged", "input_tokens", "output_tokens", "cost_usd")
    ]
    query = (
        select(month, *sums)
        .where(days.tenant_id == session.info["tenant_id"], days.provider == name[0], days.model_id == name[1])
        .group_by(month)
        .order_by(month)
    )
    return (await session.execute(query)).all()
