"""Anthropic's messages API."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS, NOTHING_LOST
from gatehouse.engine.conversation.dialects.anthropic_messages import content, reply, request
from gatehouse.engine.conversation.dialects.anthropic_messages.shape import MessagesShape
from gatehouse.engine.conversation.dialects.anthropic_messages.stream import Reader, Writer
from gatehouse.engine.conversation.dialects.anthropic_messages.tap import MessagesTap
from gatehouse.engine.conversation.dialects.anthropic_messages.usage import merged
from gatehouse.engine.conversation.dialects.anthropic_messages.view import growth, view
from gatehouse.engine.conversation.dialects.envelope import anthropic_body, anthropic_event
from gatehouse.engine.conversation.form import Completion, Reasoning, Request
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.conversation.view import EventView, Growth
from gatehouse.foundation.errors import Refusal

_UNSIGNED_BYTES: Final = content.UNSIGNED.encode()
_LOST_THINKING: Final[Mapping[str, None]] = {content.LOST_THINKING: None}
#: header by which clients enable new features of the provider
BETA = "anthropic-beta"


def passed_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the client's headers that are passed to a provider of Anthropic's dialects."""
    beta = headers.get(BETA)
    return NO_HEADERS if beta is None else {BETA: beta}


def forwarded(call: ModelCall, model: str) -> tuple[dict[str, Any], Mapping[str, None]]:
    """Return the body for a provider, without the thinking of other models, which Anthropic's models would refuse, and
    the names of the content that is left out."""
    body = {**call.body, "model": model}
    # The search costs little; most calls have no such thinking.
    if _UNSIGNED_BYTES in call.raw_body:
        messages = content.without_unsigned(body["messages"])
        if messages != body["messages"]:
            body["messages"] = messages
            return body, _LOST_THINKING
    return body, NOTHING_LOST


class AnthropicMessages:
    name = "anthropic_messages"
    operation: Literal["chat"] = "chat"
    extra_fields: frozenset[str] = frozenset()
    feature_fields: Mapping[str, str] = {
        "stop": "stop_sequences",
        "user": "metadata.user_id",
        "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
        "response_format": "output_config.format",
        "strict": "tools.strict",
        "is_error": "messages.is_error",
        "document_name": "messages.title",
        "effort_budget": "thinking.budget_tokens",
        "betas": BETA,
        "reasoning": content.LOST_THINKING,
        "later_system": "messages.system",
        # Not reported: answers without signatures are complete, and later requests report thinking that is left out.
        "returned_reasoning": "",
    }

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        return decode_call(self.name, body, MessagesShape, headers=passed_headers(headers))

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        request.prepend_instructions(body, text)

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        return forwarded(call, model)

    def tap(self, call: ModelCall, model: str, provider: str = "") -> MessagesTap:
        public_container = call.options.public_container
        return MessagesTap(call.model, None if public_container is None else partial(public_container, provider, model))

    def check_reply(self, body: bytes) -> Usage | None:
        return merged(None, reply.usage_in(body))

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Does nothing: `to_internal` refuses content that cannot be converted."""

    def to_internal(self, call: ModelCall) -> Request:
        betas = tuple(name.strip() for name in call.headers.get(BETA, "").split(",") if name.strip())
        return request.read(call.body, call.model, call.stream, betas)

    def from_internal(self, request_: Request) -> dict[str, Any]:
        return request.write(request_)

    def unwritten(self, request_: Request) -> frozenset[str]:
        return request.unwritten(request_)

    def parse_reply(self, body: bytes) -> Completion:
        return reply.read(body)

    def render_reply(self, completion: Completion, call: ModelCall) -> bytes:
        return reply.write(completion, call.body)

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        return not reply.is_shown(reasoning, reply.shown_thinking(call.body))

    def stream_reader(self) -> Reader:
        return Reader()

    def stream_writer(self, call: ModelCall) -> Writer:
        return Writer(reply.shown_thinking(call.body))

    def view(self, event: bytes) -> EventView | None:
        return view(event)

    def growth(self, event: bytes) -> Growth | None:
        return growth(event)

    def render_error(self, error: Refusal) -> bytes:
        return anthropic_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return anthropic_event(error)
