"""A post's two messages on their way into the database: a place for both before the model is asked, then what was asked
and answered, or nothing."""

import re
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import Answered, Asked
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.sealing import Sealer
from gatehouse.platform.conversations.conversations import context, table
from gatehouse.platform.conversations.conversations.asking import name_of, question_in
from gatehouse.platform.conversations.conversations.contents import Contents
from gatehouse.platform.conversations.conversations.context import Said
from gatehouse.platform.conversations.conversations.errors import ConversationFull, ConversationNotFound
from gatehouse.platform.conversations.conversations.schemas import Message
from gatehouse.platform.conversations.conversations.table import ConversationRow, MessageRow
from gatehouse.platform.organization.system_config.table import value
from gatehouse.platform.requests import Apart
from gatehouse.policy.records import ModelRecord

#: Characters of an answer that are kept; one that goes on is kept as incomplete.
MOST_CHARACTERS: Final = 1_000_000


class Given(msgspec.Struct):
    """An answer as far as it has come, as the caller reads it."""

    text: str
    complete: bool
    finish_reason: str | None = None


class Turn:
    """One post's. Each step is a transaction of its own, so that no connection is held while the model answers."""

    def __init__(self, parts: Apart, row: ConversationRow, contents: Contents, request_id: str) -> None:
        self._parts = parts
        self._row = row
        self._contents = contents
        self.request_id = request_id
        self._places = (new_id(), new_id())
        self._sequence = 0
        #: what was said before, as much as the model has room for
        self.earlier: list[Said] = []
        #: the highest numbers of labels in all that was said before
        self.labels: Mapping[str, int] = {}

    @classmethod
    async def begin(
        cls,
        parts: Apart,
        sealer: Sealer,
        row: ConversationRow,
        *,
        request_id: str,
        model: ModelRecord | None,
        question: str,
    ) -> "Turn":
        """Keeps two places behind all that was posted before. Raises `ConversationNotFound`, `ConversationFull`."""
        contents = Contents.of(sealer, row.id, row.sealed_key)
        turn = cls(parts, row, contents, request_id)
        async with parts.changing() as change:
            session = change.session
            # Locked: two posts at once are one after the other, each with a pair of its own.
            locked = await table.owned(session, row.id, row.user_id, lock=True)
            if locked is None:
                raise ConversationNotFound
            turn.labels = locked.label_numbers
            most = int(await value(session, "max_conversation_messages"))
            count, last = await table.places(session, row.id)
            if count + 2 > most:
                raise ConversationFull(most)
            turn._sequence = last + 1
            for place, role in enumerate(("user", "assistant")):
                session.add(turn._place(place, role))
            found = await table.earlier(
                session,
                row.id,
                before=turn._sequence,
                most=context.MOST_MESSAGES,
                text_bytes=context.text_bytes(model),
            )
        said = [Said(each.role, contents.open(each.content, each.id) or "") for each in found]
        turn.earlier = context.that_fit(said, context.room(model) - Said("user", question).tokens)
        return turn

    def _place(self, place: int, role: str) -> MessageRow:
        return MessageRow(
            id=self._places[place],
            tenant_id=self._row.tenant_id,
            conversation_id=self._row.id,
            sequence=self._sequence + place,
            role=role,
            status=table.PENDING,
            content=None,
            model=None,
            finish_reason=None,
            request_id=self.request_id,
            created_at=utc_now(),
        )

    @property
    def answer_id(self) -> UUID:
        return self._places[1]

    async def keep(self, given: Given, answered: Answered) -> tuple[Message, Message]:
        """Question and answer, or as much of it as there is. Can be done again with more. The answer's `content` in
        what is returned is the caller's; kept is `as_shown`."""
        asked = answered.asked
        assert asked is not None
        question = question_in(asked)
        messages = (
            self._message(0, "user", question, complete=True),
            self._message(1, "assistant", given.text, complete=given.complete),
        )
        messages[1].finish_reason = given.finish_reason
        messages[1].model = name_of(answered.chosen.model) if answered.chosen else None
        kept = (question, as_shown(given.text, asked))
        async with self._parts.changing() as change:
            # Locked before its messages, as by who deletes it. One that was deleted meanwhile stays deleted.
            row = await table.owned(change.session, self._row.id, self._row.user_id, lock=True)
            if row is None:
                return messages
            for message, text in zip(messages, kept, strict=True):
                values = message.model_dump(include={"status", "model", "finish_reason", "created_at"})
                await table.fill(change.session, message.id, content=self._contents.seal(text, message.id), **values)
            table.stir(row, asked.inspection.labels.numbers if asked.inspection is not None else {})
        return messages

    async def give_up(self) -> None:
        """Nothing is kept of a request that was refused or failed."""
        async with self._parts.changing() as change:
            await table.give_up(change.session, self._places)

    def _message(self, place: int, role: str, content: str, *, complete: bool) -> Message:
        return Message.model_validate(
            {
                "id": self._places[place],
                "sequence": self._sequence + place,
                "role": role,
                "status": "complete" if complete else "incomplete",
                "content": content,
                "model": None,
                "finish_reason": None,
                "request_id": self.request_id,
                "created_at": utc_now(),
            }
        )


def as_shown(text: str, asked: Asked) -> str:
    """An answer as the model gave it: what was turned back for the caller is a label again (decisions 4)."""
    values = asked.inspection.labels.values if asked.inspection is not None else {}
    if not values:
        return text
    labels = {value: label for label, value in values.items()}
    # The longest first: a value may be part of another.
    any_of_them = "|".join(re.escape(each) for each in sorted(labels, key=len, reverse=True))
    return re.sub(any_of_them, lambda found: labels[found[0]], text)
