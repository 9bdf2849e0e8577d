"""A post: a question to the model, with as much of what was said before as it has room for, and its answer."""

import msgspec

from gatehouse.engine.exchange import Answer
from gatehouse.platform.conversations.conversations import titles
from gatehouse.platform.conversations.conversations.asking import Models, completion, text_of
from gatehouse.platform.conversations.conversations.context import Said
from gatehouse.platform.conversations.conversations.keeping import MOST_CHARACTERS, Given, Turn
from gatehouse.platform.conversations.conversations.kept_stream import KeptStream
from gatehouse.platform.conversations.conversations.schemas import NewMessage, Posted
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import Apart


class Post:
    """One, whose messages have their places. What the pipeline refuses is an answer; nothing of it is kept."""

    def __init__(self, parts: Apart, host: Host, models: Models, row: ConversationRow, new: NewMessage) -> None:
        self._parts = parts
        self._host = host
        self._models = models
        self._row = row
        self._new = new
        self._turn: Turn

    @classmethod
    async def begin(cls, parts: Apart, host: Host, models: Models, row: ConversationRow, new: NewMessage) -> "Post":
        """Raises `ConversationFull`, `ConversationNotFound`."""
        post = cls(parts, host, models, row, new)
        post._turn = await Turn.begin(
            parts,
            host.sealer,
            row,
            request_id=models.received.request_id,
            model=await models.known(new.model or row.model),
            question=new.content,
        )
        return post

    async def whole(self) -> tuple[Answer, Posted | None]:
        """The engine's answer, and the two messages where it is no refusal."""
        answer = await self._ask()
        if answer.answered is None:
            return answer, None
        said = completion(answer)
        text = text_of(said)
        given = Given(text[:MOST_CHARACTERS], len(text) <= MOST_CHARACTERS, said.finish)
        question, reply = await self._turn.keep(given, answer.answered)
        if given.complete:
            await self._host.later.run(self._title())
        return answer, Posted(user_message=question, assistant_message=reply)

    async def streamed(self) -> Answer:
        """A stream that keeps what it passes on, or a refusal."""
        answer = await self._ask()
        if answer.stream is None or answer.answered is None:
            return answer
        stream = KeptStream(answer.stream, answer.answered, self._turn, self._host.later, self._title)
        return msgspec.structs.replace(answer, stream=stream)

    async def _ask(self) -> Answer:
        said = [*self._turn.earlier, Said("user", self._new.content)]
        try:
            answer = await self._models.ask(
                self._new.model or self._row.model, said, self._turn.labels, stream=self._new.stream
            )
        except BaseException:
            # The client has left, or the server stops: nobody waits for the database.
            await self._host.later.run(self._turn.give_up())
            raise
        if answer.answered is None:
            await self._turn.give_up()
        return answer

    def _title(self) -> titles.Making:
        return titles.make(self._parts, self._host.sealer, self._models, self._row, self._turn.answer_id)
