"""The validated fields of a client's request, and the features that are refused.

The gateway stores no responses and runs no tools. Features that would change the answer are refused; options that only
tune an answer are passed to the providers that support them (see `request`).
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


#: fields of unsupported features, with the values that are accepted, and the error message
_UNSUPPORTED: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "store": ((None, False), "The gateway keeps no responses: leave `store` out or say false."),
    "previous_response_id": ((None,), "The gateway keeps no responses: send the whole conversation as `input`."),
    "conversation": ((None,), "The gateway keeps no conversations here: send the whole conversation as `input`."),
    "background": ((None, False), "The gateway answers at once: leave `background` out or say false."),
    "prompt": ((None,), "The gateway keeps no prompts: send `instructions` and `input`."),
    "truncation": ((None, "disabled"), "The gateway drops nothing from a conversation: only `disabled` is offered."),
    "top_logprobs": ((None, 0), "The gateway tells no probabilities of tokens."),
}
_LOGPROBS: Final = "message.output_text.logprobs"


def refuse_unsupported(body: dict[str, Any]) -> None:
    """Raises `InvalidField` for unsupported features."""
    for field, (accepted, message) in _UNSUPPORTED.items():
        if body.get(field) not in accepted:
            raise InvalidField(field, message)
    read_tools(body)
    if _LOGPROBS in (body.get("include") or ()):
        raise InvalidField("include", _UNSUPPORTED["top_logprobs"][1])
