"""Rows of usage records, and their counts by day and hour."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, Date, DateTime, Float, Index, Table, Text, UniqueConstraint, Uuid
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row


class UsageRecordRow(Row):
    __tablename__ = "usage_records"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    timestamp: Mapped[datetime] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[str]
    user_id: Mapped[UUID | None]
    group_id: Mapped[UUID | None]
    api_key_id: Mapped[UUID | None]
    client_id: Mapped[UUID | None]
    provider: Mapped[str | None]
    model_id: Mapped[str | None]
    requested_model: Mapped[str | None]
    status: Mapped[str]
    stream: Mapped[bool]
    input_tokens: Mapped[int | None] = mapped_column(BigInteger)
    output_tokens: Mapped[int | None] = mapped_column(BigInteger)
    cached_tokens: Mapped[int | None] = mapped_column(BigInteger)
    cost_usd: Mapped[Decimal | None]
    latency_ms: Mapped[float | None] = mapped_column(Float(53))
    time_to_first_token_ms: Mapped[float | None] = mapped_column(Float(53))
    provider_latency_ms: Mapped[float | None] = mapped_column(Float(53))
    fallbacks: Mapped[int]
    routing_policy_id: Mapped[str | None]
    dlp_action: Mapped[str | None]
    #: `hit` or `miss` of the response cache; None if it was not used
    cache: Mapped[str | None]
    #: the end user of the call, as the caller named them
    end_user: Mapped[str | None]
    #: tags from the header `X-Gateway-Tags`; None if there are none
    tags: Mapped[list[str] | None]
    error_code: Mapped[str | None]
    #: failed attempts, oldest first (`engine.records.outcome.Failed`); None if there are none
    attempts: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB)
    #: duration of the attempt that was answered, until its whole answer or the first event of its stream
    attempt_ms: Mapped[float | None] = mapped_column(Float(53))
    #: name of the model alias whose deployment answered, or that the call named
    model_alias: Mapped[str | None]
    #: whether the request is a copy for a shadow, whose answer was discarded
    shadow: Mapped[bool]
    #: label of the credential with which the model was called; None if the provider has only one
    credential: Mapped[str | None]


def _count_columns() -> list[Column[Any]]:
    return [
        Column("tenant_id", Uuid(), nullable=False),
        Column("day", Date(), nullable=False),
        Column("user_id", Uuid()),
        Column("group_id", Uuid()),
        Column("provider", Text()),
        Column("model_id", Text()),
        Column("records", BigInteger(), nullable=False),
    ]


#: The number of records of each kind and day (UTC), without those in `usage_count_deltas`. The table has no primary
#: key, because every column of the kind may be null.
usage_counts = Table(
    "usage_counts",
    Row.metadata,
    *_count_columns(),
    UniqueConstraint(
        "tenant_id", "day", "user_id", "group_id", "provider", "model_id", postgresql_nulls_not_distinct=True
    ),
)

#: Recent counts that are not added to `usage_counts` yet.
usage_count_deltas = Table(
    "usage_count_deltas",
    Row.metadata,
    *_count_columns(),
    Index("usage_count_deltas_user", "tenant_id", "user_id"),
)

#: Counts of the records of all users by day. Triggers on the records maintain them.
usage_totals = Table(
    "usage_totals",
    Row.metadata,
    Column("tenant_id", Uuid(), nullable=False),
    Column("day", Date(), nullable=False),
    Column("group_id", Uuid()),
    Column("provider", Text()),
    Column("model_id", Text()),
    Column("records", BigInteger(), nullable=False),
    UniqueConstraint("tenant_id", "day", "group_id", "provider", "model_id", postgresql_nulls_not_distinct=True),
)

#: Counts of the records of all users by hour.
usage_hour_totals = Table(
    "usage_hour_totals",
    Row.metadata,
    Column("tenant_id", Uuid(), nullable=False),
    Column("hour", DateTime(timezone=True), nullable=False),
    Column("group_id", Uuid()),
    Column("provider", Text()),
    Column("model_id", Text()),
    Column("records", BigInteger(), nullable=False),
    UniqueConstraint("tenant_id", "hour", "group_id", "provider", "model_id", postgresql_nulls_not_distinct=True),
)
