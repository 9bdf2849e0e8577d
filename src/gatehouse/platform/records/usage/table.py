"""Usage rows, and the count of them by day."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import BigInteger, Column, Date, DateTime, Float, Index, Table, Text, UniqueConstraint, Uuid
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
    #: `hit` or `miss` of the response cache; None where it was not asked
    cache: Mapped[str | None]
    #: whom the call was made for, in the caller's words
    end_user: Mapped[str | None]
    #: from the header `X-Gateway-Tags`; None where there are none
    tags: Mapped[list[str] | None]


#: How many records of one kind a day (UTC) has, as far as they are folded in. No primary key: the kind may be null in
#: every part.
usage_counts = Table(
    "usage_counts",
    Row.metadata,
    Column("tenant_id", Uuid(), nullable=False),
    Column("day", Date(), nullable=False),
    Column("user_id", Uuid()),
    Column("group_id", Uuid()),
    Column("provider", Text()),
    Column("model_id", Text()),
    Column("records", BigInteger(), nullable=False),
    UniqueConstraint(
        "tenant_id", "day", "user_id", "group_id", "provider", "model_id", postgresql_nulls_not_distinct=True
    ),
)

#: What has come to the counts since.
usage_count_deltas = Table(
    "usage_count_deltas",
    Row.metadata,
    Column("tenant_id", Uuid(), nullable=False),
    Column("day", Date(), nullable=False),
    Column("user_id", Uuid()),
    Column("group_id", Uuid()),
    Column("provider", Text()),
    Column("model_id", Text()),
    Column("records", BigInteger(), nullable=False),
    Index("usage_count_deltas_user", "tenant_id", "user_id"),
)

#: Without users, kept by triggers on the records.
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

#: The same by the hour.
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
