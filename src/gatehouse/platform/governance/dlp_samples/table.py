"""Rows and queries of samples."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, func, not_, or_, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column, undefer

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.storage.rows import TenantRow


class SampleRow(TenantRow):
    __tablename__ = "dlp_samples"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    request_id: Mapped[str]
    timestamp: Mapped[datetime]
    user_id: Mapped[UUID | None]
    requested_model: Mapped[str | None]
    texts: Mapped[int]
    answer_texts: Mapped[int | None]
    characters: Mapped[int]
    sealed_key: Mapped[str]
    #: Loaded on demand, because the contents may have a megabyte.
    contents: Mapped[str] = mapped_column(deferred=True)
    labels: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    expected_action: Mapped[str | None]
    labelled_by: Mapped[str | None]
    labelled_at: Mapped[datetime | None]


#: The column of the labels by which a replay is scored: `labels` for DLP rules, `expected_action` for policy rules.
LabelKind: TypeAlias = Literal["labels", "expected_action"]


def is_labelled(*kinds: LabelKind) -> ColumnElement[bool]:
    """Return the condition that a sample has a label of any of these kinds."""
    return or_(*(getattr(SampleRow, kind).is_not(None) for kind in kinds))


async def newest(
    session: AsyncSession, *, last: int, days: int | None, labelled: bool | None, label_kind: LabelKind, characters: int
) -> Sequence[SampleRow]:
    """Return at most `last` samples, newest first, which together have at most `characters` characters."""
    running_total = func.sum(SampleRow.characters).over(order_by=SampleRow.id.desc())
    query = select(SampleRow.id, running_total.label("so_far"))
    if days is not None:
        query = query.where(SampleRow.timestamp >= utc_now() - timedelta(days=days))
    if labelled is not None:
        query = query.where(is_labelled(label_kind) if labelled else not_(is_labelled(label_kind)))
    newest_ids = query.order_by(SampleRow.id.desc()).limit(last).subquery()
    rows = select(SampleRow).options(undefer(SampleRow.contents)).join(newest_ids, newest_ids.c.id == SampleRow.id)
    rows = rows.where(newest_ids.c.so_far <= characters)
    return (await session.scalars(rows.order_by(SampleRow.id.desc()))).all()
