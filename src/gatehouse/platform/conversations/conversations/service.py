"""The rules of conversations."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.stages.route import AUTO
from gatehouse.foundation.clock import iso, utc_now
from gatehouse.foundation.http.lists import OffsetWindow, OpenCursor, counted
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.sealing import Sealer
from gatehouse.platform.access.preferences.table import preferences
from gatehouse.platform.change import Change
from gatehouse.platform.conversations.conversations import table
from gatehouse.platform.conversations.conversations.asking import Models, name_of
from gatehouse.platform.conversations.conversations.contents import Contents
from gatehouse.platform.conversations.conversations.errors import ConversationNotFound, ModelNotUsable
from gatehouse.platform.conversations.conversations.owners import owner_id
from gatehouse.platform.conversations.conversations.schemas import (
    Conversation,
    ConversationUpdate,
    Message,
    ModelSnapshot,
    NewConversation,
)
from gatehouse.platform.conversations.conversations.table import ConversationRow, MessageRow
from gatehouse.policy.records import ModelRecord


def owned(row: ConversationRow, caller: Caller) -> ConversationRow:
    """The conversation, if it is the caller's own; another's behaves as nonexistent, whoever asks."""
    if row.user_id != caller.user_id:
        raise ConversationNotFound
    return row


async def listed(session: AsyncSession, sealer: Sealer, caller: Caller, window: OffsetWindow) -> dict[str, Any]:
    query = table.of_owner(owner_id(caller))
    rows = (await session.scalars(window.apply(query))).all()
    total = await session.scalar(counted(query)) or 0
    return window.envelope("conversations", await _all_shown(session, sealer, rows), total)


async def shown(session: AsyncSession, sealer: Sealer, row: ConversationRow) -> Conversation:
    (one,) = await _all_shown(session, sealer, [row])
    return one


async def create(change: Change, sealer: Sealer, models: Models, caller: Caller, new: NewConversation) -> Conversation:
    """Raises `ModelNotUsable` for a model that the body names."""
    user_id = owner_id(caller)
    name, model = await _chosen(change.session, models, caller, new.model)
    now, conversation_id = utc_now(), new_id()
    sealed_key, contents = Contents.new(sealer, conversation_id)
    row = ConversationRow(
        id=conversation_id,
        tenant_id=change.tenant_id,
        user_id=user_id,
        sealed_key=sealed_key,
        title=None if new.title is None else contents.seal(new.title, "title"),
        model=name,
        model_snapshot=_snapshot(model),
        summary=None,
        summarized_at=None,
        label_numbers={},
        created_at=now,
        updated_at=now,
    )
    change.session.add(row)
    change.record("conversation.created", "conversation", row.id, model=name)
    answers = model or await models.known(name)
    payload = {
        "conversation_id": str(row.id),
        "user_id": str(user_id),
        "provider": answers.provider if answers else None,
        "model": answers.model_id if answers else None,
        "created_at": iso(now),
    }
    change.announce("new_conversation", payload)
    return _shown(row, contents, 0)


async def update(
    change: Change, sealer: Sealer, models: Models, row: ConversationRow, body: ConversationUpdate
) -> Conversation:
    """Raises `ModelNotUsable`."""
    contents = Contents.of(sealer, row.id, row.sealed_key)
    sent = body.sent()
    if "title" in sent:
        row.title = None if body.title is None else contents.seal(body.title, "title")
    if "model" in sent:
        model = await models.named(body.model)
        row.model, row.model_snapshot = AUTO if model is None else name_of(model), _snapshot(model)
    if sent:
        # The title itself says what the conversation is about.
        change.record("conversation.updated", "conversation", row.id, fields=sorted(sent))
    return await shown(change.session, sealer, row)


async def delete(change: Change, row: ConversationRow) -> None:
    """Messages and share links go with it (by the database)."""
    await change.session.delete(row)
    change.record("conversation.deleted", "conversation", row.id)


async def messages(session: AsyncSession, sealer: Sealer, row: ConversationRow, window: OpenCursor) -> dict[str, Any]:
    """What was said, oldest first."""
    contents = Contents.of(sealer, row.id, row.sealed_key)
    rows = (await session.scalars(window.apply(table.said_in(row.id), MessageRow.sequence))).all()
    return window.envelope(
        "messages", rows, position=lambda each: each.sequence, shown=lambda each: _message(each, contents)
    )


async def _chosen(
    session: AsyncSession, models: Models, caller: Caller, named: str | None
) -> tuple[str, ModelRecord | None]:
    """The model that was named; else the one that the owner prefers, if they may still use it; else `auto`."""
    if named is None:
        preferred = (await preferences(session, owner_id(caller))).default_model_id
        try:
            model = await models.named(preferred or AUTO)
        except ModelNotUsable:
            model = None
    else:
        model = await models.named(named)
    return AUTO if model is None else name_of(model), model


def _snapshot(model: ModelRecord | None) -> dict[str, Any] | None:
    return None if model is None else ModelSnapshot.model_validate(model).model_dump(mode="json")


async def _all_shown(session: AsyncSession, sealer: Sealer, rows: Sequence[ConversationRow]) -> list[Conversation]:
    counts = await table.counts(session, [row.id for row in rows])
    return [_shown(row, Contents.of(sealer, row.id, row.sealed_key), counts.get(row.id, 0)) for row in rows]


def _shown(row: ConversationRow, contents: Contents, messages: int) -> Conversation:
    opened = {what: contents.open(getattr(row, what), what) for what in ("title", "summary")}
    return Conversation.model_validate(_fields(row) | opened | {"message_count": messages})


def _message(row: MessageRow, contents: Contents) -> Message:
    return Message.model_validate(_fields(row) | {"content": contents.open(row.content, row.id) or ""})


def _fields(row: ConversationRow | MessageRow) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in type(row).__table__.columns}
