"""Rows of conversations and their messages, and named queries."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Select, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.storage.rows import TenantRow

PENDING: Final = "pending"

#: A kept place whose request must have ended long ago: its worker was killed meanwhile.
_STALE: Final = timedelta(hours=1)

#: Sealed texts are base64, and a little longer than what they hold.
_SEALED_BYTES: Final = 64
_BYTES_SEALED: Final = 4 / 3

_EARLIER: Final = text(
    "SELECT id, role, content FROM ("
    " SELECT id, role, content, sequence, sum(octet_length(content)) OVER (ORDER BY sequence DESC) AS size FROM ("
    "  SELECT * FROM conversation_messages WHERE conversation_id = :conversation AND status <> 'pending'"
    "  AND sequence < :before ORDER BY sequence DESC LIMIT :most) AS newest) AS sized"
    " WHERE size <= :bytes ORDER BY sequence"
)


class ConversationRow(TenantRow):
    __tablename__ = "conversations"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    sealed_key: Mapped[str]
    title: Mapped[str | None]
    model: Mapped[str]
    model_snapshot: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    summary: Mapped[str | None]
    summarized_at: Mapped[datetime | None]
    #: the highest number of a label, by entity type
    label_numbers: Mapped[dict[str, int]] = mapped_column(JSONB)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class MessageRow(TenantRow):
    """`content` is sealed under the conversation's key; null while the model is asked."""

    __tablename__ = "conversation_messages"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    conversation_id: Mapped[UUID]
    sequence: Mapped[int]
    role: Mapped[str]
    status: Mapped[str]
    content: Mapped[str | None]
    model: Mapped[str | None]
    finish_reason: Mapped[str | None]
    request_id: Mapped[str | None]
    created_at: Mapped[datetime]


class Earlier(NamedTuple):
    id: UUID
    role: str
    content: str


def of_owner(user_id: UUID) -> Select[ConversationRow]:
    """The one that something was said in last stands first."""
    query = select(ConversationRow).where(ConversationRow.user_id == user_id)
    return query.order_by(ConversationRow.updated_at.desc(), ConversationRow.id)


async def owned(
    session: AsyncSession, conversation_id: UUID, user_id: UUID, *, lock: bool = False
) -> ConversationRow | None:
    query = select(ConversationRow).where(ConversationRow.id == conversation_id, ConversationRow.user_id == user_id)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def counts(session: AsyncSession, conversation_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Messages of each conversation, without those that have only a place yet."""
    query = (
        select(MessageRow.conversation_id, func.count())
        .where(MessageRow.conversation_id.in_(conversation_ids), MessageRow.status != PENDING)
        .group_by(MessageRow.conversation_id)
    )
    return {row[0]: row[1] for row in await session.execute(query)}


def said_in(conversation_id: UUID) -> Select[MessageRow]:
    return select(MessageRow).where(MessageRow.conversation_id == conversation_id, MessageRow.status != PENDING)


async def places(session: AsyncSession, conversation_id: UUID) -> tuple[int, int]:
    """How many messages there are, kept places included, and the last one's sequence. Places that nobody will fill any
    more are given up first."""
    await session.execute(
        delete(MessageRow).where(
            MessageRow.conversation_id == conversation_id,
            MessageRow.status == PENDING,
            MessageRow.created_at < utc_now() - _STALE,
        )
    )
    query = select(func.count(), func.max(MessageRow.sequence)).where(MessageRow.conversation_id == conversation_id)
    count, last = (await session.execute(query)).one()
    return count, last or 0


async def earlier(
    session: AsyncSession, conversation_id: UUID, *, before: int, most: int, text_bytes: int
) -> list[Earlier]:
    """The newest messages before a sequence, oldest first: `most` of them, and about `text_bytes` of text at most."""
    values = {
        "conversation": conversation_id,
        "before": before,
        "most": most,
        "bytes": int(text_bytes * _BYTES_SEALED) + most * _SEALED_BYTES,
    }
    return [Earlier(*row) for row in await session.execute(_EARLIER, values)]


async def fill(session: AsyncSession, message_id: UUID, **values: Any) -> None:
    await session.execute(update(MessageRow).where(MessageRow.id == message_id).values(**values))


async def give_up(session: AsyncSession, message_ids: Sequence[UUID]) -> None:
    """Places that were kept for nothing."""
    await session.execute(delete(MessageRow).where(MessageRow.id.in_(message_ids), MessageRow.status == PENDING))


def stir(row: ConversationRow, labels: Mapping[str, int]) -> None:
    """Something was said, with labels up to these numbers. The row is locked."""
    known = row.label_numbers
    row.label_numbers = known | {kind: max(number, known.get(kind, 0)) for kind, number in labels.items()}
    row.updated_at = utc_now()


async def first_answer(session: AsyncSession, conversation_id: UUID) -> UUID | None:
    """The first whole one."""
    query = said_in(conversation_id).where(MessageRow.role == "assistant", MessageRow.status == "complete")
    row = (await session.scalars(query.order_by(MessageRow.sequence).limit(1))).one_or_none()
    return row.id if row else None


async def opening(session: AsyncSession, conversation_id: UUID, answer_id: UUID) -> Sequence[MessageRow]:
    """An answer and the question before it."""
    answer = select(MessageRow.sequence).where(MessageRow.id == answer_id).scalar_subquery()
    query = said_in(conversation_id).where(MessageRow.sequence.in_((answer - 1, answer)))
    return (await session.scalars(query.order_by(MessageRow.sequence))).all()


async def entitle(session: AsyncSession, conversation_id: UUID, title: str) -> None:
    """Unless it was given a title meanwhile."""
    await session.execute(
        update(ConversationRow)
        .where(ConversationRow.id == conversation_id, ConversationRow.title.is_(None))
        .values(title=title)
    )


async def keep_summary(session: AsyncSession, conversation_id: UUID, summary: str, at: datetime) -> None:
    await session.execute(
        update(ConversationRow).where(ConversationRow.id == conversation_id).values(summary=summary, summarized_at=at)
    )
