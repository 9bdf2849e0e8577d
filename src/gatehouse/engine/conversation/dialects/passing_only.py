"""Base of dialects that are never converted: a call goes only to providers of the same dialect."""

from collections.abc import Mapping
from typing import Any, NoReturn

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import CallShape, decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS, NOTHING_LOST
from gatehouse.engine.conversation.dialects.envelope import openai_body, openai_event
from gatehouse.engine.conversation.dialects.openai_chat.tap import ChatTap
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible
from gatehouse.engine.conversation.form import Reasoning
from gatehouse.foundation.errors import Refusal


class PassingOnly:
    """A dialect without streams and without a system prompt. `shape` has the fields that the gateway reads."""

    name: str
    shape: type[CallShape]
    feature_fields: Mapping[str, str] = {}
    extra_fields: frozenset[str] = frozenset()

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, self.shape)
        if call.stream:
            raise InvalidField("stream", "`stream`: the answers of this path are not streamed.")
        return call

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        return None

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        return {**call.body, "model": model}, NOTHING_LOST

    def tap(self, call: ModelCall, model: str, provider: str = "") -> ChatTap:
        return ChatTap(call.model, withhold_usage=False)

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Does nothing: no call is converted."""

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return openai_event(error)

    def to_internal(self, call: ModelCall) -> NoReturn:
        _never_converted()

    def from_internal(self, request: Any) -> NoReturn:
        _never_converted()

    def unwritten(self, request: Any) -> NoReturn:
        _never_converted()

    def parse_reply(self, body: bytes) -> NoReturn:
        _never_converted()

    def render_reply(self, answer: Any, call: ModelCall) -> NoReturn:
        _never_converted()

    def hides(self, reasoning: Reasoning, call: ModelCall) -> NoReturn:
        _never_converted()

    def stream_reader(self) -> NoReturn:
        _never_converted()

    def stream_writer(self, call: ModelCall) -> NoReturn:
        _never_converted()

    def view(self, event: bytes) -> NoReturn:
        _never_converted()

    def growth(self, event: bytes) -> NoReturn:
        _never_converted()


def _never_converted() -> NoReturn:
    raise NotConvertible("calls of this dialect are neither converted nor streamed")
