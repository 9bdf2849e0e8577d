"""Rows and queries of conversations and their messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Select, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.storage.rows import TenantRow

PENDING: Final = "pending"

#: Time without a heartbeat of a worker after which its pending messages no longer block a conversation.
WORKER_TIMEOUT_SECONDS: Final = 60.0

#: The size of a sealed text is the size of its base64 form plus this overhead.
_SEALING_OVERHEAD_BYTES: Final = 64
_BASE64_FACTOR: Final = 4 / 3

# The entry of a killed worker in `nodes` expires, or is removed when another worker starts on its machine.
_DELETE_ABANDONED: Final = text(
    "DELETE FROM conversation_messages m WHERE m.conversation_id = :conversation AND m.status = 'pending'"
    " AND NOT EXISTS (SELECT FROM nodes n WHERE n.id = m.node AND n.seen_at > now() - make_interval(secs => :timeout))"
)
_EARLIER_MESSAGES: Final = text(
    "SELECT id, role, content FROM ("
    " SELECT id, role, content, sequence, sum(octet_length(content)) OVER (ORDER BY sequence DESC) AS size FROM ("
    "  SELECT * FROM conversation_messages WHERE conversation_id = :conversation AND status <> 'pending'"
    "  AND sequence < :before ORDER BY sequence DESC LIMIT :max_rows) AS newest) AS sized"
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
    #: highest label number by entity type
    label_numbers: Mapped[dict[str, int]] = mapped_column(JSONB)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class MessageRow(TenantRow):
    """A message. `content` is sealed under the conversation's key. It is null while the message is pending. `node` is
    the worker that answers."""

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
    node: Mapped[UUID | None]
    created_at: Mapped[datetime]


class EarlierMessage(NamedTuple):
    """A message for the model's context. `content` is sealed."""

    id: UUID
    role: str
    content: str


class SealedTitle(NamedTuple):
    """A conversation that has a title. `title` is sealed."""

    id: UUID
    sealed_key: str
    title: str


async def newest_titles(session: AsyncSession, user_id: UUID, limit: int) -> list[SealedTitle]:
    """Return the conversations with a title among the user's `limit` most recently used ones, the most recent first."""
    columns = select(ConversationRow.id, ConversationRow.sealed_key, ConversationRow.title)
    newest = columns.where(ConversationRow.user_id == user_id)
    newest = newest.order_by(ConversationRow.updated_at.desc(), ConversationRow.id).limit(limit)
    return [SealedTitle(id_, key, title) for id_, key, title in await session.execute(newest) if title is not None]


def conversations_of(user_id: UUID) -> Select[ConversationRow]:
    """Return the query for a user's conversations, the most recently used first."""
    query = select(ConversationRow).where(ConversationRow.user_id == user_id)
    return query.order_by(ConversationRow.updated_at.desc(), ConversationRow.id)


async def owned(
    session: AsyncSession, conversation_id: UUID, user_id: UUID, *, lock: bool = False
) -> ConversationRow | None:
    query = select(ConversationRow).where(ConversationRow.id == conversation_id, ConversationRow.user_id == user_id)
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


async def counts(session: AsyncSession, conversation_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the number of messages of each conversation, excluding pending messages."""
    query = (
        select(MessageRow.conversation_id, func.count())
        .where(MessageRow.conversation_id.in_(conversation_ids), MessageRow.status != PENDING)
        .group_by(MessageRow.conversation_id)
    )
    return {row[0]: row[1] for row in await session.execute(query)}


def visible_messages(conversation_id: UUID) -> Select[MessageRow]:
    """Return the query for a conversation's messages, excluding pending messages."""
    return select(MessageRow).where(MessageRow.conversation_id == conversation_id, MessageRow.status != PENDING)


async def count_messages(session: AsyncSession, conversation_id: UUID) -> tuple[int, int]:
    """Return the number of messages, including pending ones, and the highest sequence. First deletes pending messages
    of workers that have ended or have sent no heartbeat for `WORKER_TIMEOUT_SECONDS`."""
    await session.execute(_DELETE_ABANDONED, {"conversation": conversation_id, "timeout": WORKER_TIMEOUT_SECONDS})
    query = select(func.count(), func.max(MessageRow.sequence)).where(MessageRow.conversation_id == conversation_id)
    count, last = (await session.execute(query)).one()
    return count, last or 0


async def earlier_messages(
    session: AsyncSession, conversation_id: UUID, *, before: int, limit: int, text_bytes: int
) -> list[EarlierMessage]:
    """Return the newest messages before a sequence, oldest first. Returns at most `limit` messages, with about
    `text_bytes` of text in total."""
    values = {
        "conversation": conversation_id,
        "before": before,
        "max_rows": limit,
        "bytes": int(text_bytes * _BASE64_FACTOR) + limit * _SEALING_OVERHEAD_BYTES,
    }
    return [EarlierMessage(*row) for row in await session.execute(_EARLIER_MESSAGES, values)]


async def newest_question(session: AsyncSession, conversation_id: UUID) -> MessageRow | None:
    """Return the question with the highest sequence, even if it is pending."""
    query = select(MessageRow).where(MessageRow.conversation_id == conversation_id, MessageRow.role == "user")
    return (await session.scalars(query.order_by(MessageRow.sequence.desc()).limit(1))).one_or_none()


async def delete_turn(session: AsyncSession, conversation_id: UUID, question_sequence: int) -> None:
    """Delete a question and its answer."""
    pair = MessageRow.sequence.in_((question_sequence, question_sequence + 1))
    await session.execute(delete(MessageRow).where(MessageRow.conversation_id == conversation_id, pair))


async def fill_message(session: AsyncSession, message_id: UUID, **values: Any) -> bool:
    """Set the columns of a message. Return whether the message exists."""
    filled: Any = await session.execute(update(MessageRow).where(MessageRow.id == message_id).values(**values))
    return bool(filled.rowcount)


async def delete_pending(session: AsyncSession, message_ids: Sequence[UUID]) -> None:
    """Delete those of the messages that are still pending."""
    await session.execute(delete(MessageRow).where(MessageRow.id.in_(message_ids), MessageRow.status == PENDING))


def record_activity(row: ConversationRow, labels: Mapping[str, int]) -> None:
    """Update the time of the last message and the highest label numbers. The caller must have locked the row."""
    previous = row.label_numbers
    row.label_numbers = previous | {kind: max(number, previous.get(kind, 0)) for kind, number in labels.items()}
    row.updated_at = utc_now()


async def first_answer(session: AsyncSession, conversation_id: UUID) -> UUID | None:
    """Return the id of the first complete answer, or None."""
    query = visible_messages(conversation_id).where(MessageRow.role == "assistant", MessageRow.status == "complete")
    row = (await session.scalars(query.order_by(MessageRow.sequence).limit(1))).one_or_none()
    return row.id if row else None


async def question_and_answer(session: AsyncSession, conversation_id: UUID, answer_id: UUID) -> Sequence[MessageRow]:
    """Return an answer and the question before it, in the order of the conversation."""
    answer = select(MessageRow.sequence).where(MessageRow.id == answer_id).scalar_subquery()
    query = visible_messages(conversation_id).where(MessageRow.sequence.in_((answer - 1, answer)))
    return (await session.scalars(query.order_by(MessageRow.sequence))).all()


async def set_title_if_none(session: AsyncSession, conversation_id: UUID, title: str) -> None:
    """Set the sealed title if the conversation has none."""
    await session.execute(
        update(ConversationRow)
        .where(ConversationRow.id == conversation_id, ConversationRow.title.is_(None))
        .values(title=title)
    )


async def store_summary(session: AsyncSession, conversation_id: UUID, summary: str, at: datetime) -> None:
    await session.execute(
        update(ConversationRow).where(ConversationRow.id == conversation_id).values(summary=summary, summarized_at=at)
    )
