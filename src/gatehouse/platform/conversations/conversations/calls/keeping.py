"""Stores the two messages of a post. Reserves a row for each before the model is called, and fills or removes the rows
afterwards.
"""

import re
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.exchange import CallRequest, Exchange
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.conversations.conversations import table
from gatehouse.platform.conversations.conversations.calls import context
from gatehouse.platform.conversations.conversations.calls.asking import full_name, inspected_question
from gatehouse.platform.conversations.conversations.calls.context import PromptMessage
from gatehouse.platform.conversations.conversations.contents import SealedContents
from gatehouse.platform.conversations.conversations.errors import (
    ConversationFull,
    ConversationNotFound,
    NotTheNewestQuestion,
)
from gatehouse.platform.conversations.conversations.schemas import Message
from gatehouse.platform.conversations.conversations.table import ConversationRow, MessageRow
from gatehouse.platform.organization.system_config.table import value
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.policy.catalog import ModelRecord

#: Maximum length of a stored answer. A longer answer is cut and stored as incomplete.
MAX_ANSWER_CHARACTERS: Final = 1_000_000


class AnswerText(msgspec.Struct):
    """An answer in which redacted values are restored for the caller. If `complete` is false, `text` is the part that
    was received so far."""

    text: str
    complete: bool
    finish_reason: str | None = None


class ConversationTurn:
    """The question and the answer of one request to post a message. Each step runs in its own transaction, so that no
    database connection is occupied while the model answers."""

    def __init__(
        self,
        transactions: SplitTransactions,
        row: ConversationRow,
        contents: SealedContents,
        *,
        node: UUID,
        request_id: str,
    ) -> None:
        self._transactions = transactions
        self._node = node
        self._row = row
        self._contents = contents
        self.request_id = request_id
        self._message_ids = (new_id(), new_id())
        self._sequence = 0
        #: sequence of the question that this turn replaces, or None
        self._replaced_sequence: int | None = None
        #: earlier messages that fit into the context window of the model
        self.earlier: list[PromptMessage] = []
        #: highest label numbers in the earlier messages
        self.labels: Mapping[str, int] = {}

    @classmethod
    async def begin(
        cls,
        transactions: SplitTransactions,
        sealer: Sealer,
        row: ConversationRow,
        *,
        node: UUID,
        request_id: str,
        model: ModelRecord | None,
        question: str,
        replaces: UUID | None,
    ) -> "ConversationTurn":
        """Reserve two rows at the end of the conversation. `node` is this worker. Raises `ConversationNotFound`,
        `ConversationFull` and `NotTheNewestQuestion`."""
        contents = SealedContents.of(sealer, row.id, row.sealed_key)
        turn = cls(transactions, row, contents, node=node, request_id=request_id)
        async with transactions.changing() as change:
            session = change.session
            # The lock serializes concurrent posts, so that each post gets a pair of adjacent rows.
            locked = await table.owned(session, row.id, row.user_id, lock=True)
            if locked is None:
                raise ConversationNotFound
            turn.labels = locked.label_numbers
            limit = int(await value(session, "max_conversation_messages"))
            count, last_sequence = await table.count_messages(session, row.id)
            if replaces is not None:
                turn._replaced_sequence = await _newest_question(session, row.id, replaces)
                count -= 2
            if count + 2 > limit:
                raise ConversationFull(limit)
            turn._sequence = last_sequence + 1
            for index, role in enumerate(("user", "assistant")):
                session.add(turn._pending_row(index, role))
            rows = await table.earlier_messages(
                session,
                row.id,
                before=turn._sequence if turn._replaced_sequence is None else turn._replaced_sequence,
                limit=context.MAX_MESSAGES,
                text_bytes=context.max_prompt_bytes(model),
            )
        earlier = [PromptMessage(message.role, contents.open(message.content, message.id) or "") for message in rows]
        tokens = context.max_prompt_tokens(model) - PromptMessage("user", question).tokens
        turn.earlier = context.newest_that_fit(earlier, tokens)
        return turn

    def _pending_row(self, index: int, role: str) -> MessageRow:
        return MessageRow(
            id=self._message_ids[index],
            tenant_id=self._row.tenant_id,
            conversation_id=self._row.id,
            sequence=self._sequence + index,
            role=role,
            status=table.PENDING,
            content=None,
            model=None,
            finish_reason=None,
            request_id=self.request_id,
            node=self._node,
            created_at=utc_now(),
        )

    @property
    def answer_id(self) -> UUID:
        return self._message_ids[1]

    async def store(self, answer: AnswerText, exchange: Exchange) -> tuple[Message, Message]:
        """Store the question and the answer, or the part of the answer received so far. The method can be called again
        with a longer part. The returned messages have the text for the caller. The stored answer has labels instead of
        restored values (`with_labels`).
        """
        call_request = exchange.call_request
        assert call_request is not None
        question = inspected_question(call_request)
        messages = (
            self._message(0, "user", question, complete=True),
            self._message(1, "assistant", answer.text, complete=answer.complete),
        )
        messages[1].finish_reason = answer.finish_reason
        messages[1].model = full_name(exchange.chosen.model) if exchange.chosen else None
        stored_texts = (question, with_labels(answer.text, call_request))
        async with self._transactions.changing() as change:
            # The conversation is locked before its messages, in the same order as for a deletion, so no deadlock is
            # possible. Nothing is stored if the conversation was deleted meanwhile, or if the reserved rows were
            # deleted because this worker was suspended.
            row = await table.owned(change.session, self._row.id, self._row.user_id, lock=True)
            if row is None:
                return messages
            for message, text in zip(messages, stored_texts, strict=True):
                values = message.model_dump(include={"status", "model", "finish_reason", "created_at"})
                content = self._contents.seal(text, message.id)
                if not await table.fill_message(change.session, message.id, content=content, **values):
                    return messages
            if self._replaced_sequence is not None:
                await table.delete_turn(change.session, row.id, self._replaced_sequence)
            table.record_activity(
                row, call_request.inspection.labels.last_numbers if call_request.inspection is not None else {}
            )
        return messages

    async def discard(self) -> None:
        """Remove the reserved rows after a refusal or failure."""
        async with self._transactions.changing() as change:
            await table.delete_pending(change.session, self._message_ids)

    def _message(self, index: int, role: str, content: str, *, complete: bool) -> Message:
        return Message.model_validate(
            {
                "id": self._message_ids[index],
                "sequence": self._sequence + index,
                "role": role,
                "status": "complete" if complete else "incomplete",
                "content": content,
                "model": None,
                "finish_reason": None,
                "request_id": self.request_id,
                "created_at": utc_now(),
            }
        )


async def _newest_question(session: AsyncSession, conversation_id: UUID, message_id: UUID) -> int:
    """Return the sequence of a message. Raises `NotTheNewestQuestion` unless it is the conversation's newest
    question."""
    newest = await table.newest_question(session, conversation_id)
    if newest is None or newest.id != message_id:
        raise NotTheNewestQuestion
    return newest.sequence


def with_labels(text: str, call_request: CallRequest) -> str:
    """Return an answer as the model sent it. Values that were restored for the caller are replaced by their labels
    again."""
    values = call_request.inspection.labels.originals_by_label if call_request.inspection is not None else {}
    if not values:
        return text
    labels = {value: label for label, value in values.items()}
    # The longest values come first, because a value may be part of another value.
    pattern = "|".join(re.escape(value) for value in sorted(labels, key=len, reverse=True))
    return re.sub(pattern, lambda match: labels[match[0]], text)
