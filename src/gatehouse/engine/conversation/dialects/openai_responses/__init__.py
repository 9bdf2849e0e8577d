"""OpenAI's responses API. Calls to a provider that has this API are passed through. For any other provider they are
converted to its own dialect."""

from collections.abc import Mapping
from typing import Any, Literal, NoReturn

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.answers import UsageReader
from gatehouse.engine.conversation.decoding.bodies import decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.envelope import openai_body, typed_event
from gatehouse.engine.conversation.dialects.openai_responses import native, reply, request
from gatehouse.engine.conversation.dialects.openai_responses.native import ResponseEditor
from gatehouse.engine.conversation.dialects.openai_responses.reasoning import is_shown, shown_reasoning
from gatehouse.engine.conversation.dialects.openai_responses.shape import (
    ResponsesShape,
    refuse_unconvertible,
    refuse_unsupported,
)
from gatehouse.engine.conversation.dialects.openai_responses.stream import Writer
from gatehouse.engine.conversation.dialects.openai_responses.tap import ResponsesTap
from gatehouse.engine.conversation.dialects.openai_responses.usage import UsageShape, usage_of
from gatehouse.engine.conversation.dialects.openai_responses.view import growth, view
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Reasoning, Request
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.conversation.view import EventView, Growth
from gatehouse.foundation.errors import Refusal

_usage_in = UsageReader("output", UsageShape)


class OpenAIResponses:
    name = "openai_responses"
    operation: Literal["chat", "count_tokens"] = "chat"
    limit_field = "max_output_tokens"
    extra_fields: frozenset[str] = frozenset()
    feature_fields: Mapping[str, str] = {
        "response_format": "text.format",
        "strict": "tools.strict",
        "detail": "input.detail",
        "signature": "input.extra_content",
        "format_strict": "text.format.strict",
        "format_description": "text.format.description",
        "format_name": "text.format.name",
        "later_system": "input.system",
        "document_name": "input.filename",
        "reasoning": "input.reasoning",
        "returned_reasoning": "include",
    }

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, ResponsesShape)
        refuse_unsupported(call.body)
        return call

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        instructions = body.get("instructions")
        body["instructions"] = f"{text}\n\n{instructions}" if instructions else text

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        return native.forwarded(call, model, provider)

    def tap(self, call: ModelCall, model: str, provider: str = "") -> ResponsesTap:
        return ResponsesTap(ResponseEditor(call, provider, model))

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(_usage_in(body))

    def edit_reply(self, body: bytes, call: ModelCall, model: str, provider: str) -> bytes:
        return ResponseEditor(call, provider, model).body(body)

    def refuse_unconvertible(self, call: ModelCall) -> None:
        refuse_unconvertible(call.body)

    def to_internal(self, call: ModelCall) -> Request:
        return request.read(call.body, call.model, call.stream)

    def from_internal(self, request_: Request) -> NoReturn:
        raise NotConvertible("no other dialect is converted to the responses API")

    def unwritten(self, request_: Request) -> NoReturn:
        raise NotConvertible("no other dialect is converted to the responses API")

    def parse_reply(self, body: bytes) -> NoReturn:
        raise NotConvertible("responses are not converted")

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("responses are not converted")

    def render_reply(self, answer: Completion, call: ModelCall) -> bytes:
        return reply.write(answer, call.body)

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        return not is_shown(reasoning, shown_reasoning(call.body))

    def stream_writer(self, call: ModelCall) -> Writer:
        return Writer(call.body)

    def view(self, event: bytes) -> EventView | None:
        return view(event)

    def growth(self, event: bytes) -> Growth | None:
        return growth(event)

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return typed_event(error)
