"""A streamed answer that is kept while it passes to the client."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any, Final

import msgspec
import structlog

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.exchange import Answered
from gatehouse.engine.streaming import Blocks
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.tasks import wanted
from gatehouse.platform.conversations.conversations.asking import DIALECT
from gatehouse.platform.conversations.conversations.keeping import MOST_CHARACTERS, Given, Turn
from gatehouse.platform.later import Later

log = structlog.get_logger(__name__)

#: How much of an answer is lost at most with a worker that is killed.
EVERY_SECONDS: Final = 5.0
_END: Final = b"[DONE]"


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


_chunk: Final = msgspec.json.Decoder(_Chunk)


class Heard:
    """What a stream of chat completions has said so far."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._length = 0
        self.begun = False
        self.ended = False
        self.finish_reason: str | None = None

    def take(self, block: bytes) -> None:
        """Whole events."""
        for event in events(block):
            data = data_of(event)
            if data == _END:
                self.ended = True
            elif data:
                self._read(data)

    def _read(self, data: bytes) -> None:
        try:
            chunk = _chunk.decode(data)
        except msgspec.MsgspecError:
            return
        for choice in chunk.choices[:1]:
            self.begun = True
            self.finish_reason = choice.finish_reason or self.finish_reason
            for text in filter(None, (choice.delta.content, choice.delta.refusal)):
                if self._length < MOST_CHARACTERS:
                    self._texts.append(text)
                self._length += len(text)

    def given(self) -> Given:
        complete = self.ended and self._length <= MOST_CHARACTERS
        return Given("".join(self._texts)[:MOST_CHARACTERS], complete, self.finish_reason)


class NotKept(Unavailable):
    code = "not_kept"
    message = "The answer could not be kept in the conversation."


class KeptStream(Blocks):
    """The engine's events, untouched. Before the first word passes on, the question is kept, and the answer as
    incomplete; every few seconds, what has come of it; before the last event, all of it. So whoever has read an answer
    finds it, and what came of one that broke off (at the provider, at the client, with this worker) is there too. A
    stream that is refused before its first word leaves nothing. `whole` makes what is to be done after a whole
    answer."""

    def __init__(
        self,
        stream: AsyncIterator[bytes],
        answered: Answered,
        turn: Turn,
        later: Later,
        whole: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._stream = stream
        self._answered = answered
        self._turn = turn
        self._later = later
        self._whole = whole
        self._heard = Heard()
        self._kept = False
        self._over = False
        self._keeping: asyncio.Task[None] | None = None
        super().__init__()

    async def _end(self) -> None:
        """Does not wait for the database: the client may have left, and the server may be about to."""
        await self._stream.aclose()  # type: ignore[attr-defined]
        if not self._over:
            self._over = True
            await self._later.run(self._settle())

    async def _read(self) -> AsyncGenerator[bytes, None]:
        try:
            async for block in self._stream:
                self._heard.take(block)
                if self._heard.ended and not self._over:
                    await self._settle()
                elif self._heard.begun and not self._kept:
                    await self._turn.keep(self._heard.given(), self._answered)
                    self._kept = True
                elif self._kept and self._keeping is None:
                    self._keeping = asyncio.create_task(self._keep_now_and_then())
                yield block
            if not self._over:
                await self._settle()
        except Exception:
            # The engine tells its own faults: this is the database's.
            log.exception("conversations.not_kept", request_id=self._turn.request_id)
            yield DIALECTS[DIALECT].render_stream_error(NotKept())

    async def _keep_now_and_then(self) -> None:
        """Beside the stream, which does not wait for it. What fails is made up for at the end."""
        kept = 0
        while wanted():
            await asyncio.sleep(EVERY_SECONDS)
            given = self._heard.given()
            if len(given.text) == kept:
                continue
            with contextlib.suppress(Exception):
                await self._turn.keep(given, self._answered)
                kept = len(given.text)

    async def _settle(self) -> None:
        if self._keeping is not None:
            # Not after what follows.
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        if not self._heard.begun:
            await self._turn.give_up()
            self._over = True
            return
        given = self._heard.given()
        await self._turn.keep(given, self._answered)
        # Not before: whoever is cancelled here leaves it to `_end`.
        self._over = True
        if given.complete:
            await self._later.run(self._whole())
