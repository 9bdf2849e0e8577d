"""Rows of DLP events, and their counts by day."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, Column, Date, Float, Table, Text, UniqueConstraint, Uuid
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.records.by_day import CountedRecords


class DlpEventRow(Row):
    __tablename__ = "dlp_events"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    timestamp: Mapped[datetime] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[str]
    user_id: Mapped[UUID | None]
    group_ids: Mapped[list[str]]
    rule_id: Mapped[str | None]
    rule_name: Mapped[str | None]
    detector_type: Mapped[str | None]
    entity_type: Mapped[str | None]
    direction: Mapped[str]
    status: Mapped[str]
    score: Mapped[float | None] = mapped_column(Float(53))
    match_count: Mapped[int | None]
    model: Mapped[str | None]
    action: Mapped[str | None]
    severity: Mapped[str | None]
    source: Mapped[str | None]


#: Number of events per day (UTC), user, entity type, direction and status. There is no primary key, because `user_id`
#: and `entity_type` may be null.
dlp_event_counts = Table(
    "dlp_event_counts",
    Row.metadata,
    Column("tenant_id", Uuid(), nullable=False),
    Column("day", Date(), nullable=False),
    Column("user_id", Uuid()),
    Column("entity_type", Text()),
    Column("direction", Text(), nullable=False),
    Column("status", Text(), nullable=False),
    Column("records", BigInteger(), nullable=False),
    UniqueConstraint(
        "tenant_id", "day", "user_id", "entity_type", "direction", "status", postgresql_nulls_not_distinct=True
    ),
)

DLP_EVENT_RECORDS = CountedRecords(DlpEventRow, dlp_event_counts)
