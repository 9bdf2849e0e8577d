"""Samples' rows, and named queries."""

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
    #: read where it is asked for: it may have a megabyte
    contents: Mapped[str] = mapped_column(deferred=True)
    labels: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    expected_action: Mapped[str | None]
    labelled_by: Mapped[str | None]
    labelled_at: Mapped[datetime | None]


#: What a replay is measured by: the labels of DLP rules, or those of policy rules.
LabelKind: TypeAlias = Literal["labels", "expected_action"]


def is_labelled(*kinds: LabelKind) -> ColumnElement[bool]:
    """With a label of any of these kinds."""
    return or_(*(getattr(SampleRow, kind).is_not(None) for kind in kinds))


async def newest(
    session: AsyncSession, *, last: int, days: int | None, labelled: bool | None, by: LabelKind, characters: int
) -> Sequence[SampleRow]:
    """Newest first; as many as have so many `characters` together."""
    before = func.sum(SampleRow.characters).over(order_by=SampleRow.id.desc())
    query = select(SampleRow.id, before.label("so_far"))
    if days is not None:
        query = query.where(SampleRow.timestamp >= utc_now() - timedelta(days=days))
    if labelled is not None:
        query = query.where(is_labelled(by) if labelled else not_(is_labelled(by)))
    wanted = query.order_by(SampleRow.id.desc()).limit(last).subquery()
    chosen = select(SampleRow).options(undefer(SampleRow.contents)).join(wanted, wanted.c.id == SampleRow.id)
    chosen = chosen.where(wanted.c.so_far <= characters)
    return (await session.scalars(chosen.order_by(SampleRow.id.desc()))).all()
