"""Stores a streamed answer while it is sent to the client."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any, Final

import msgspec
import structlog

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.exchange import Exchange
from gatehouse.engine.streaming import Blocks
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.tasks import is_running
from gatehouse.platform.background.tasks import BackgroundTasks
from gatehouse.platform.conversations.conversations.calls.asking import DIALECT
from gatehouse.platform.conversations.conversations.calls.keeping import (
    MAX_ANSWER_CHARACTERS,
    AnswerText,
    ConversationTurn,
)

log = structlog.get_logger(__name__)

#: Interval at which an answer is stored while it arrives. If the worker is killed, the text of at most one interval is
#: lost.
SAVE_INTERVAL_SECONDS: Final = 5.0
_END: Final = b"[DONE]"


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


_chunk_decoder: Final = msgspec.json.Decoder(_Chunk)


class StreamTranscript:
    """Collects the text of a stream of chat completion chunks."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._length = 0
        self.begun = False
        self.ended = False
        self.finish_reason: str | None = None

    def feed(self, block: bytes) -> None:
        """Add a block of complete events."""
        for event in events(block):
            data = data_of(event)
            if data == _END:
                self.ended = True
            elif data:
                self._read(data)

    def _read(self, data: bytes) -> None:
        try:
            chunk = _chunk_decoder.decode(data)
        except msgspec.MsgspecError:
            return
        for choice in chunk.choices[:1]:
            self.begun = True
            self.finish_reason = choice.finish_reason or self.finish_reason
            for text in filter(None, (choice.delta.content, choice.delta.refusal)):
                if self._length < MAX_ANSWER_CHARACTERS:
                    self._texts.append(text)
                self._length += len(text)

    def answer(self) -> AnswerText:
        """Return the text received so far. It is complete if the stream has ended and the text is within the limit."""
        complete = self.ended and self._length <= MAX_ANSWER_CHARACTERS
        return AnswerText("".join(self._texts)[:MAX_ANSWER_CHARACTERS], complete, self.finish_reason)


class AnswerNotStored(Unavailable):
    code = "not_kept"
    message = "The answer could not be stored in the conversation."


class KeptStream(Blocks):
    """Passes the engine's events on unchanged, and stores the answer.

    The question and an incomplete answer are stored before the first text is passed on. Then the text received so far
    is stored every few seconds, and the whole answer before the last event. So an answer that the client has received
    is always stored. If the provider, the client or the end of this worker interrupts an answer, the received part is
    stored. A stream that is refused before its first text stores nothing. `on_complete` returns the coroutine to run
    after a complete answer.
    """

    def __init__(
        self,
        stream: AsyncIterator[bytes],
        exchange: Exchange,
        turn: ConversationTurn,
        background: BackgroundTasks,
        on_complete: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._stream = stream
        self._exchange = exchange
        self._turn = turn
        self._background = background
        self._on_complete = on_complete
        self._transcript = StreamTranscript()
        self._is_stored = False
        self._is_finished = False
        self._saving: asyncio.Task[None] | None = None
        super().__init__()

    async def _end(self) -> None:
        """Finish in the background, because the client may have disconnected and the server may be shutting down."""
        await self._stream.aclose()  # type: ignore[attr-defined]
        if not self._is_finished:
            self._is_finished = True
            await self._background.run(self._finish())

    async def _read(self) -> AsyncGenerator[bytes, None]:
        try:
            async for block in self._stream:
                self._transcript.feed(block)
                if self._transcript.ended and not self._is_finished:
                    await self._finish()
                elif self._transcript.begun and not self._is_stored:
                    await self._turn.store(self._transcript.answer(), self._exchange)
                    self._is_stored = True
                elif self._is_stored and self._saving is None:
                    self._saving = asyncio.create_task(self._save_periodically())
                yield block
            if not self._is_finished:
                await self._finish()
        except Exception:
            # The engine renders its own errors as events, so this error comes from the database.
            log.exception("conversations.not_kept", request_id=self._turn.request_id)
            yield DIALECTS[DIALECT].render_stream_error(AnswerNotStored())

    async def _save_periodically(self) -> None:
        """Store the text received so far at intervals. This runs as a separate task, so it does not delay the stream.
        Failures are ignored, because `_finish` stores the whole answer."""
        stored_characters = 0
        while is_running():
            await asyncio.sleep(SAVE_INTERVAL_SECONDS)
            answer = self._transcript.answer()
            if len(answer.text) == stored_characters:
                continue
            with contextlib.suppress(Exception):
                await self._turn.store(answer, self._exchange)
                stored_characters = len(answer.text)

    async def _finish(self) -> None:
        """Store the answer, or discard the turn if there is no answer."""
        if self._saving is not None:
            # A save in progress must not overwrite the whole answer with a part of it.
            self._saving.cancel()
            await asyncio.wait({self._saving})
        if not self._transcript.begun:
            await self._turn.discard()
            self._is_finished = True
            return
        answer = self._transcript.answer()
        await self._turn.store(answer, self._exchange)
        # Set after the answer is stored, so that `_end` retries if this task is cancelled before.
        self._is_finished = True
        if answer.complete:
            await self._background.run(self._on_complete())
