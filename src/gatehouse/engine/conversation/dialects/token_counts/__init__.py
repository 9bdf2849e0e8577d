"""Counts of a call's input tokens, for clients of Anthropic's messages and of OpenAI's responses.

A count is a call without an answer: its body is that of the model call, and it passes the same checks. An operation of
the provider counts the tokens. If the provider has none, the gateway estimates their number.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.decoding.bodies import decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS, Dialect
from gatehouse.engine.conversation.dialects.anthropic_messages import AnthropicMessages, forwarded, passed_headers
from gatehouse.engine.conversation.dialects.anthropic_messages.shape import MessagesShape
from gatehouse.engine.conversation.dialects.openai_responses import OpenAIResponses
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible
from gatehouse.engine.conversation.form import Completion, Reasoning, Request
from gatehouse.engine.conversation.usage import Usage
from gatehouse.foundation.errors import Refusal


class _MessagesCountShape(MessagesShape, gc=False, kw_only=True):
    max_tokens: int | None = None  # type: ignore[assignment]


#: highest number of tokens that is accepted as a provider's count
MAX_COUNTED_TOKENS: Final = 10**9


class _Count(msgspec.Struct):
    input_tokens: Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNTED_TOKENS)]


_count = msgspec.json.Decoder(_Count)
#: fields of OpenAI's operation
_COUNTED_FIELDS: Final = frozenset({
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation",
    "previous_response_id",
})  # fmt: skip


class AnthropicTokenCount:
    """`POST /v1/messages/count_tokens`, of clients and of providers."""

    name = "anthropic_token_count"
    operation: Literal["count_tokens"] = "count_tokens"
    feature_fields: Mapping[str, str] = {}
    extra_fields: frozenset[str] = frozenset()
    _calls: Dialect = AnthropicMessages()

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        return _not_streamed(decode_call(self.name, body, _MessagesCountShape, headers=passed_headers(headers)))

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        self._calls.prepend_instructions(body, text)

    def render_count(self, tokens: int) -> bytes:
        """Return the body for the client with a number of tokens."""
        return msgspec.json.encode({"input_tokens": tokens})

    def read_count(self, body: bytes) -> int:
        """Return the number of tokens in a provider's answer. Raises `NotConvertible`."""
        return decode(_count, body).input_tokens

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Does nothing: `to_internal` refuses what cannot be converted."""

    def to_internal(self, call: ModelCall) -> Request:
        request: Request = self._calls.to_internal(call)
        return request

    def render_reply(self, answer: Completion, call: ModelCall) -> bytes:
        return _rendered(self, answer)

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        return False

    def stream_writer(self, call: ModelCall) -> NoReturn:
        raise NotConvertible("token counts are not streamed")

    def view(self, event: bytes) -> NoReturn:
        raise NotConvertible("token counts are not streamed")

    def growth(self, event: bytes) -> NoReturn:
        raise NotConvertible("token counts are not streamed")

    def render_error(self, error: Refusal) -> bytes:
        return self._calls.render_error(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return self._calls.render_stream_error(error)

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        return forwarded(call, model)

    def tap(self, call: ModelCall, model: str, provider: str = "") -> NoReturn:
        raise NotConvertible("token counts are not streamed")

    def check_reply(self, body: bytes) -> Usage | None:
        self.read_count(body)
        return None

    def unwritten(self, request: Any) -> NoReturn:
        raise NotConvertible("token counts are not converted")

    def from_internal(self, request: Any) -> NoReturn:
        raise NotConvertible("token counts are not converted")

    def parse_reply(self, body: bytes) -> NoReturn:
        raise NotConvertible("token counts are not converted")

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("token counts are not streamed")


class OpenAITokenCount(OpenAIResponses):
    """`POST /v1/responses/input_tokens`, of clients and of providers with the Responses API."""

    name = "openai_token_count"
    operation: Literal["count_tokens"] = "count_tokens"
    limit_field = ""

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        return _not_streamed(super().decode(body, headers))

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        body, lost = super().forward(call, model, provider)
        # The operation accepts fewer fields than a call.
        return {name: value for name, value in body.items() if name in _COUNTED_FIELDS}, lost

    def check_reply(self, body: bytes) -> Usage | None:
        self.read_count(body)
        return None

    def render_reply(self, completion: Completion, call: ModelCall) -> bytes:
        return _rendered(self, completion)

    def edit_reply(self, body: bytes, call: ModelCall, model: str, provider: str) -> bytes:
        return body

    def render_count(self, tokens: int) -> bytes:
        return msgspec.json.encode({"object": "response.input_tokens", "input_tokens": tokens})

    def read_count(self, body: bytes) -> int:
        return decode(_count, body).input_tokens


def _rendered(dialect: AnthropicTokenCount | OpenAITokenCount, answer: Completion) -> bytes:
    """Return the body for the client with the number of tokens in a converted answer."""
    if answer.usage is None:
        raise NotConvertible("the answer has no count")
    return dialect.render_count(answer.usage.input_tokens)


def _not_streamed(call: ModelCall) -> ModelCall:
    if call.stream:
        raise InvalidField("stream", "A token count cannot be streamed.")
    return call


COUNTING: Mapping[str, AnthropicTokenCount | OpenAITokenCount] = {
    dialect.name: dialect for dialect in (AnthropicTokenCount(), OpenAITokenCount())
}
