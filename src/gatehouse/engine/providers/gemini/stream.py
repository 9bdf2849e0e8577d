"""Converts Gemini's events to deltas."""

from collections.abc import Sequence
from uuid import uuid4

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import (
    Delta,
    GenerationFinished,
    PartsLost,
    Reasoning,
    ReasoningDelta,
    StreamFailed,
    StreamStarted,
    Text,
    TextDelta,
    ToolArguments,
    ToolStarted,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.providers.gemini.reply import GeminiAnswer, answer_decoder, usage_of


class Reader:
    """See `StreamReader`. There is no end event: a finish reason is the end."""

    __slots__ = ("_started", "_tools")

    def __init__(self) -> None:
        self._started = False
        self._tools = 0

    def read(self, event: bytes) -> Sequence[Delta]:
        data = data_of(event)
        if not data:
            return ()
        answer = decode(answer_decoder, data)
        if answer.error is not None:
            return (StreamFailed(answer.error.message),)
        if answer.candidates is None and answer.prompt_feedback is None and answer.usage_metadata is None:
            raise NotConvertible("an event without content")
        deltas: list[Delta] = []
        usage = usage_of(answer.usage_metadata)
        if not self._started:
            self._started = True
            started = StreamStarted(
                id=answer.response_id or f"resp_{uuid4().hex}", model=answer.model_version, usage=usage
            )
            deltas.append(started)
        self._parts(answer, deltas)
        if lost := answer.lost:
            deltas.append(PartsLost(lost))
        reason = answer.finish(called=self._tools > 0)
        if reason is not None:
            deltas.append(GenerationFinished(reason=reason))
        if usage is not None:
            deltas.append(UsageDelta(usage))
        return deltas

    def _parts(self, answer: GeminiAnswer, deltas: list[Delta]) -> None:
        for part in answer.parts:
            if isinstance(part, Text):
                deltas.append(TextDelta(part.text))
                continue
            if isinstance(part, Reasoning):
                deltas.append(ReasoningDelta(part.text))
                continue
            index = self._tools
            self._tools += 1
            deltas.append(ToolStarted(index=index, id=part.id, name=part.name, signature=part.signature))
            deltas.append(ToolArguments(index=index, text=part.arguments))
