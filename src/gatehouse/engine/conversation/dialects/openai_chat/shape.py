"""The validated fields of a client's request. All other fields go to the provider unchanged."""

from typing import Annotated, Any, Literal

import msgspec

from gatehouse.engine.conversation.decoding.bodies import CallShape

Positive = Annotated[int, msgspec.Meta(ge=1)]


class MessageShape(msgspec.Struct, gc=False):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None


class ChatShape(CallShape, gc=False, kw_only=True):
    messages: Annotated[list[MessageShape], msgspec.Meta(min_length=1)]
    stream_options: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: Positive | None = None
    stop: str | list[str] | None = None
