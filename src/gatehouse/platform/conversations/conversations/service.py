"""Creates, lists, changes and deletes conversations."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.stages.candidates.route import AUTO
from gatehouse.foundation.clock import iso, utc_now
from gatehouse.foundation.http.lists import OffsetWindow, OpenCursor, count_query
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.access.preferences.table import preferences
from gatehouse.platform.changes.change import Change
from gatehouse.platform.conversations.conversations import table
from gatehouse.platform.conversations.conversations.calls.asking import ModelCaller, full_name
from gatehouse.platform.conversations.conversations.contents import SealedContents
from gatehouse.platform.conversations.conversations.errors import ConversationNotFound, ModelNotUsable
from gatehouse.platform.conversations.conversations.owners import owner_id
from gatehouse.platform.conversations.conversations.schemas import (
    Conversation,
    ConversationUpdate,
    Message,
    ModelSnapshot,
    NewConversation,
)
from gatehouse.platform.conversations.conversations.table import ConversationRow, MessageRow, SealedTitle
from gatehouse.policy.catalog import ModelRecord

#: Maximum number of conversations whose titles a search opens. Opening a title takes about 20 microseconds.
MAX_SEARCHED_CONVERSATIONS: Final = 1_000


def require_owner(row: ConversationRow, caller: Caller) -> ConversationRow:
    """Return the conversation if the caller owns it. Raises `ConversationNotFound` for other callers."""
    if row.user_id != caller.user_id:
        raise ConversationNotFound
    return row


async def list_page(
    session: AsyncSession, sealer: Sealer, caller: Caller, window: OffsetWindow, search: str | None
) -> dict[str, Any]:
    """Return a page of the caller's conversations, or of those whose title contains `search`."""
    user_id = owner_id(caller)
    query = table.conversations_of(user_id)
    if search:
        titles = await table.newest_titles(session, user_id, MAX_SEARCHED_CONVERSATIONS)
        query = query.where(ConversationRow.id.in_(await asyncio.to_thread(_matches, sealer, titles, search)))
    rows = (await session.scalars(window.apply(query))).all()
    total = await session.scalar(count_query(query)) or 0
    return window.envelope("conversations", await _conversations_of_rows(session, sealer, rows), total)


async def to_shown(session: AsyncSession, sealer: Sealer, row: ConversationRow) -> Conversation:
    (conversation,) = await _conversations_of_rows(session, sealer, [row])
    return conversation


async def create(
    change: Change, sealer: Sealer, models: ModelCaller, caller: Caller, new: NewConversation
) -> Conversation:
    """Create a conversation. Raises `ModelNotUsable` if the body specifies a model that the caller may not use."""
    user_id = owner_id(caller)
    name, model = await _select_model(change.session, models, caller, new.model)
    now, conversation_id = utc_now(), new_id()
    sealed_key, contents = SealedContents.new(sealer, conversation_id)
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
    answering_model = model or await models.catalog_entry(name)
    payload = {
        "conversation_id": str(row.id),
        "user_id": str(user_id),
        "provider": answering_model.provider if answering_model else None,
        "model": answering_model.model_id if answering_model else None,
        "created_at": iso(now),
    }
    change.announce("new_conversation", payload)
    return _conversation(row, contents, 0)


async def update(
    change: Change, sealer: Sealer, models: ModelCaller, row: ConversationRow, body: ConversationUpdate
) -> Conversation:
    """Change the title or the model. Raises `ModelNotUsable`."""
    contents = SealedContents.of(sealer, row.id, row.sealed_key)
    changes = body.sent()
    if "title" in changes:
        row.title = None if body.title is None else contents.seal(body.title, "title")
    if "model" in changes:
        model = await models.usable_model(body.model)
        row.model, row.model_snapshot = AUTO if model is None else full_name(model), _snapshot(model)
    if changes:
        # The event contains only the names of the fields, because the title may be confidential.
        change.record("conversation.updated", "conversation", row.id, fields=sorted(changes))
    return await to_shown(change.session, sealer, row)


async def delete(change: Change, row: ConversationRow) -> None:
    """Delete a conversation. The database deletes its messages and share links."""
    await change.session.delete(row)
    change.record("conversation.deleted", "conversation", row.id)


async def messages(session: AsyncSession, sealer: Sealer, row: ConversationRow, window: OpenCursor) -> dict[str, Any]:
    """Return a page of messages, oldest first."""
    contents = SealedContents.of(sealer, row.id, row.sealed_key)
    rows = (await session.scalars(window.apply(table.visible_messages(row.id), MessageRow.sequence))).all()
    return window.envelope(
        "messages", rows, position=lambda message: message.sequence, shown=lambda message: _message(message, contents)
    )


async def _select_model(
    session: AsyncSession, models: ModelCaller, caller: Caller, requested: str | None
) -> tuple[str, ModelRecord | None]:
    """Return the name and the catalog entry of the requested model, or else of the owner's preferred model if they may
    use it, or else `auto`. Raises `ModelNotUsable` for a requested model that the caller may not use."""
    if requested is None:
        preferred = (await preferences(session, owner_id(caller))).default_model_id
        try:
            model = await models.usable_model(preferred or AUTO)
        except ModelNotUsable:
            model = None
    else:
        model = await models.usable_model(requested)
    return AUTO if model is None else full_name(model), model


def _matches(sealer: Sealer, titles: Sequence[SealedTitle], search: str) -> list[UUID]:
    """Return the conversations whose title contains `search`, regardless of case. Titles are sealed, so the database
    cannot search them."""
    searched = search.casefold()
    return [
        item.id
        for item in titles
        if searched in (SealedContents.of(sealer, item.id, item.sealed_key).open(item.title, "title") or "").casefold()
    ]


def _snapshot(model: ModelRecord | None) -> dict[str, Any] | None:
    return None if model is None else ModelSnapshot.model_validate(model).model_dump(mode="json")


async def _conversations_of_rows(
    session: AsyncSession, sealer: Sealer, rows: Sequence[ConversationRow]
) -> list[Conversation]:
    counts = await table.counts(session, [row.id for row in rows])
    return [
        _conversation(row, SealedContents.of(sealer, row.id, row.sealed_key), counts.get(row.id, 0)) for row in rows
    ]


def _conversation(row: ConversationRow, contents: SealedContents, messages: int) -> Conversation:
    opened = {field: contents.open(getattr(row, field), field) for field in ("title", "summary")}
    return Conversation.model_validate(_fields(row) | opened | {"message_count": messages})


def _message(row: MessageRow, contents: SealedContents) -> Message:
    return Message.model_validate(_fields(row) | {"content": contents.open(row.content, row.id) or ""})


def _fields(row: ConversationRow | MessageRow) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in type(row).__table__.columns}
