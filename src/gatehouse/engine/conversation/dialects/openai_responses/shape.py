"""The validated fields of a client's request, and the features that are refused.

The gateway stores no responses and runs no tools. Features that would change the answer are refused; options that only
tune an answer are passed to the providers that support them (see `request`). A provider with the Responses API can
store responses and run tools, if the organization allows it.
"""

from typing import Annotated, Any, Final

import msgspec

from gatehouse.engine.conversation.decoding.bodies import CallShape
from gatehouse.engine.conversation.dialects.openai_responses.tools import read_tools
from gatehouse.engine.conversation.errors import InvalidField

Positive = Annotated[int, msgspec.Meta(ge=1)]


class ResponsesShape(CallShape, gc=False, kw_only=True):
    input: str | Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]
    instructions: str | None = None
    max_output_tokens: Positive | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    truncation: str | None = None


#: the value of `include` that requests log probabilities
LOGPROBS: Final = "message.output_text.logprobs"
NO_LOGPROBS: Final = "The gateway returns no log probabilities of tokens."
#: fields of unsupported features, with the values that are accepted, and the error message
_UNSUPPORTED: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "conversation": (
        (None,),
        "The gateway stores no conversations of this API: send the whole conversation as `input`.",
    ),
    "background": ((None, False), "The gateway has no background responses: omit `background`, or set it to false."),
    "prompt": ((None,), "The gateway stores no prompts: send `instructions` and `input`."),
    "top_logprobs": ((None, 0), NO_LOGPROBS),
}
#: features that a provider without the Responses API does not support, in the same form
_NOT_CONVERTED: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "store": (
        (None, False),
        "Neither the gateway nor this model's provider stores responses: omit `store`, or set it to false.",
    ),
    "previous_response_id": (
        (None,),
        "Neither the gateway nor this model's provider stores responses: send the whole conversation as `input`.",
    ),
}
_TRUNCATIONS: Final = (None, "auto", "disabled")


def refuse_unconvertible(body: dict[str, Any]) -> None:
    """Raises `InvalidField` for features that only a provider with the Responses API supports."""
    _refuse(body, _NOT_CONVERTED)


def _refuse(body: dict[str, Any], features: dict[str, tuple[tuple[Any, ...], str]]) -> None:
    for field, (accepted, message) in features.items():
        if body.get(field) not in accepted:
            raise InvalidField(field, message)


def refuse_unsupported(body: dict[str, Any]) -> None:
    """Raises `InvalidField` for features that no provider supports."""
    _refuse(body, _UNSUPPORTED)
    if body.get("truncation") not in _TRUNCATIONS:
        raise InvalidField("truncation", "`truncation` must be `auto` or `disabled`.")
    read_tools(body, accepts_hosted=True)
    if LOGPROBS in (body.get("include") or ()):
        raise InvalidField("include", NO_LOGPROBS)
