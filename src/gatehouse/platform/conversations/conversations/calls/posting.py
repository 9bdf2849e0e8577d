"""Posts a message: sends a question with the earlier messages to the model, and stores the question and the answer."""

import msgspec

from gatehouse.engine.exchange import Answer
from gatehouse.platform.conversations.conversations.calls import titles
from gatehouse.platform.conversations.conversations.calls.asking import ModelCaller, completion, completion_text
from gatehouse.platform.conversations.conversations.calls.context import PromptMessage
from gatehouse.platform.conversations.conversations.calls.keeping import (
    MAX_ANSWER_CHARACTERS,
    AnswerText,
    ConversationTurn,
)
from gatehouse.platform.conversations.conversations.calls.kept_stream import KeptStream
from gatehouse.platform.conversations.conversations.schemas import NewMessage, Posted
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.request.injected import SplitTransactions
from gatehouse.platform.request.ports import Host


class Post:
    """One post. `begin` reserves rows for its two messages. If the pipeline refuses the post, the refusal is returned
    as an answer and is not stored."""

    def __init__(
        self, transactions: SplitTransactions, host: Host, models: ModelCaller, row: ConversationRow, new: NewMessage
    ) -> None:
        self._transactions = transactions
        self._host = host
        self._models = models
        self._row = row
        self._new = new
        self._turn: ConversationTurn

    @classmethod
    async def begin(
        cls, transactions: SplitTransactions, host: Host, models: ModelCaller, row: ConversationRow, new: NewMessage
    ) -> "Post":
        """Reserve rows for the two messages. Raises `ConversationFull`, `ConversationNotFound` and
        `NotTheNewestQuestion`."""
        post = cls(transactions, host, models, row, new)
        post._turn = await ConversationTurn.begin(
            transactions,
            host.sealer,
            row,
            node=host.node.id,
            request_id=models.received.request_id,
            model=await models.catalog_entry(new.model or row.model),
            question=new.content,
            replaces=new.replaces,
        )
        return post

    async def complete_answer(self) -> tuple[Answer, Posted | None]:
        """Return the engine's answer, and the two stored messages, or None if the answer is a refusal."""
        answer = await self._ask()
        if answer.exchange is None:
            return answer, None
        reply = completion(answer)
        text = completion_text(reply)
        stored = AnswerText(text[:MAX_ANSWER_CHARACTERS], len(text) <= MAX_ANSWER_CHARACTERS, reply.finish)
        user_message, assistant_message = await self._turn.store(stored, answer.exchange)
        if stored.complete:
            await self._host.later.run(self._title())
        return answer, Posted(user_message=user_message, assistant_message=assistant_message)

    async def streamed_answer(self) -> Answer:
        """Return a stream that passes the answer on and stores it, or a refusal."""
        answer = await self._ask()
        if answer.stream is None or answer.exchange is None:
            return answer
        stream = KeptStream(answer.stream, answer.exchange, self._turn, self._host.later, self._title)
        return msgspec.structs.replace(answer, stream=stream)

    async def _ask(self) -> Answer:
        messages = [*self._turn.earlier, PromptMessage("user", self._new.content)]
        try:
            answer = await self._models.ask(
                self._new.model or self._row.model, messages, self._turn.labels, stream=self._new.stream
            )
        except BaseException:
            # The client has disconnected, or the server is shutting down. Clean up in the background.
            await self._host.later.run(self._turn.discard())
            raise
        if answer.exchange is None:
            await self._turn.discard()
        return answer

    def _title(self) -> titles.TitleTask:
        return titles.make_title(self._transactions, self._host.sealer, self._models, self._row, self._turn.answer_id)
