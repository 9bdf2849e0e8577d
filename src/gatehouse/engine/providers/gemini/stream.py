"""Gemini's events to deltas."""

from collections.abc import Sequence
from uuid import uuid4

from gatehouse.engine.conversation.answers import decoded
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import (
    Delta,
    Faulted,
    Finished,
    Started,
    Text,
    TextDelta,
    ToolArguments,
    ToolStarted,
    UsageTold,
)
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.providers.gemini.reply import Answer, answer, usage_of


class Reader:
    """See `StreamReader`. There is no last event: a reason to finish is the end."""

    __slots__ = ("_started", "_tools")

    def __init__(self) -> None:
        self._started = False
        self._tools = 0

    def read(self, event: bytes) -> Sequence[Delta]:
        data = data_of(event)
        if not data:
            return ()
        told = decoded(answer, data)
        if told.error is not None:
            return (Faulted(told.error.message),)
        if told.candidates is None and told.prompt_feedback is None and told.usage_metadata is None:
            raise NotConvertible("an event that says nothing")
        deltas: list[Delta] = []
        usage = usage_of(told.usage_metadata)
        if not self._started:
            self._started = True
            started = Started(id=told.response_id or f"resp_{uuid4().hex}", model=told.model_version, usage=usage)
            deltas.append(started)
        self._parts(told, deltas)
        reason = told.finish(called=self._tools > 0)
        if reason is not None:
            deltas.append(Finished(reason=reason))
        if usage is not None:
            deltas.append(UsageTold(usage))
        return deltas

    def _parts(self, told: Answer, deltas: list[Delta]) -> None:
        for part in told.parts:
            if isinstance(part, Text):
                deltas.append(TextDelta(part.text))
                continue
            index = self._tools
            self._tools += 1
            deltas.append(ToolStarted(index=index, id=part.id, name=part.name, signature=part.signature))
            deltas.append(ToolArguments(index=index, text=part.arguments))
