"""OpenAI's chat completions API."""

from collections.abc import Mapping
from typing import Any, Literal

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS, NOTHING_LOST
from gatehouse.engine.conversation.dialects.envelope import openai_body, openai_event
from gatehouse.engine.conversation.dialects.openai_chat import reply, request
from gatehouse.engine.conversation.dialects.openai_chat.shape import ChatShape
from gatehouse.engine.conversation.dialects.openai_chat.stream import Reader, Writer
from gatehouse.engine.conversation.dialects.openai_chat.tap import ChatTap
from gatehouse.engine.conversation.dialects.openai_chat.usage import usage_of
from gatehouse.engine.conversation.dialects.openai_chat.view import growth, view
from gatehouse.engine.conversation.form import Completion, Reasoning, Request
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.conversation.view import EventView, Growth
from gatehouse.foundation.errors import Refusal


class OpenAIChat:
    name = "openai_chat"
    operation: Literal["chat"] = "chat"
    extra_fields: frozenset[str] = frozenset()
    feature_fields: Mapping[str, str] = {
        "strict": "tools.strict",
        "detail": "messages.detail",
        "signature": "messages.extra_content",
        "format_strict": "response_format.strict",
        "format_description": "response_format.description",
        "format_name": "response_format.name",
        "later_system": "messages.system",
        "document_name": "messages.filename",
    }

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        return decode_call(self.name, body, ChatShape)

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        request.prepend_instructions(body, text)

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        body = {**call.body, "model": model}
        if call.stream and not request.wants_usage(call.body):
            body["stream_options"] = {**(call.body.get("stream_options") or {}), "include_usage": True}
        return body, NOTHING_LOST

    def tap(self, call: ModelCall, model: str, provider: str = "") -> ChatTap:
        # `forward` requests the usage if the client does not.
        return ChatTap(call.model, withhold_usage=not request.wants_usage(call.body))

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(reply.usage_in(body))

    def refuse_unconvertible(self, call: ModelCall) -> None:
        request.refuse_unconvertible(call.body)

    def to_internal(self, call: ModelCall) -> Request:
        return request.read(call.body, call.model, call.stream)

    def from_internal(self, request_: Request) -> dict[str, Any]:
        return request.write(request_)

    def unwritten(self, request_: Request) -> frozenset[str]:
        return request.unwritten(request_)

    def parse_reply(self, body: bytes) -> Completion:
        return reply.read(body)

    def render_reply(self, completion: Completion, call: ModelCall) -> bytes:
        return reply.write(completion)

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        return not reasoning.text

    def stream_reader(self) -> Reader:
        return Reader()

    def stream_writer(self, call: ModelCall) -> Writer:
        return Writer(send_usage=request.wants_usage(call.body))

    def view(self, event: bytes) -> EventView | None:
        return view(event)

    def growth(self, event: bytes) -> Growth | None:
        return growth(event)

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return openai_event(error)
