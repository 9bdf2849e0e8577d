"""OpenAI's responses API, for clients only. Every call is converted to the provider's own dialect. So a call can go to
any provider, and no provider stores responses, because the gateway never calls a provider's responses API."""

from collections.abc import Mapping
from typing import Any, Literal

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.envelope import openai_body, typed_event
from gatehouse.engine.conversation.dialects.openai_responses import reply, request
from gatehouse.engine.conversation.dialects.openai_responses.shape import ResponsesShape, refuse_unsupported
from gatehouse.engine.conversation.dialects.openai_responses.stream import Writer
from gatehouse.engine.conversation.dialects.openai_responses.view import view
from gatehouse.engine.conversation.form import Completion, Request
from gatehouse.engine.conversation.view import EventView
from gatehouse.foundation.errors import Refusal


class OpenAIResponses:
    name = "openai_responses"
    operation: Literal["chat"] = "chat"
    feature_fields: Mapping[str, str] = {
        "response_format": "text.format",
        "strict": "tools.strict",
        "detail": "input.detail",
        "signature": "input.extra_content",
        "format_strict": "text.format.strict",
    }

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, ResponsesShape)
        refuse_unsupported(call.body)
        return call

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        instructions = body.get("instructions")
        body["instructions"] = f"{text}\n\n{instructions}" if instructions else text

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Does nothing. Every call is converted, so `decode` already refuses fields that cannot be converted."""

    def to_internal(self, call: ModelCall) -> Request:
        return request.read(call.body, call.model, call.stream)

    def render_reply(self, answer: Completion, call: ModelCall) -> bytes:
        return reply.write(answer, call.body)

    def stream_writer(self, call: ModelCall) -> Writer:
        return Writer(call.body)

    def view(self, event: bytes) -> EventView | None:
        return view(event)

    def growth(self, event: bytes) -> None:
        # There is no fast path, because each event has a sequence number, which merged events would break.
        return None

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return typed_event(error)
