"""The validated fields of a client's request. All other fields go to the provider unchanged."""

from typing import Annotated, Any, Literal

import msgspec

from gatehouse.engine.conversation.decoding.bodies import CallShape


class MessageShape(msgspec.Struct, gc=False):
    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]]


class MessagesShape(CallShape, gc=False, kw_only=True):
    messages: Annotated[list[MessageShape], msgspec.Meta(min_length=1)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
