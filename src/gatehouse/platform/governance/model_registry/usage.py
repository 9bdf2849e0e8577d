"""Usage of the organization's models, read from the keeper's daily counts."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Column, Date, DateTime, Numeric, Table, Text, Uuid, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.storage.rows import Row

#: Number of calls of each model by day (UTC). The keeper writes this table.
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

#: Provider and model id.
ModelName = tuple[str, str]


class Use(NamedTuple):
    """Usage of a model. `requests` counts today (UTC) and the 29 days before. `first_at` and `last_at` are the times of
    the first and the last call, or None."""

    requests: int
    first_at: datetime | None
    last_at: datetime | None


UNUSED: Final = Use(0, None, None)


async def by_model(
    session: AsyncSession, names: Collection[ModelName] | None = None, *, lookback_days: int | None = None
) -> dict[ModelName, Use]:
    """Return the usage of models by name. Models without requests are left out.

    If `names` is None, the usage of all models is returned, registered or not. With `lookback_days`, only models that
    were called in this number of days are returned, including today (UTC).
    """
    if names is not None and not names:
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
    if names is not None:
        query = query.where(tuple_(days.provider, days.model_id).in_(list(names)))
    if lookback_days is not None:
        first_day = today - timedelta(days=lookback_days)
        query = query.having(func.max(days.day).filter(days.last_at.is_not(None)) > first_day)
    return {
        (provider, model_id): Use(int(requests), first_at, last_at)
        for provider, model_id, requests, first_at, last_at in await session.execute(query)
    }


async def by_month(session: AsyncSession, name: ModelName) -> Sequence[Any]:
    """Return a model's sums by month (UTC), oldest first. `month` is the first day of the month. The sums have the
    column names of the table."""
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
