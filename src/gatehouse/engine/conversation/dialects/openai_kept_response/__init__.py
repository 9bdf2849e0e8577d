"""Operations on a response that a provider keeps: read it, list the items of its input, delete it.

Such an operation calls no model and has no cost. The gateway creates its body from the query and from the path, which
contains the client's id of the response. The operation passes the same checks as a call of the response's model.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NoReturn
from urllib.parse import parse_qsl

import msgspec

from gatehouse.engine.conversation.call import KeptRequest, ModelCall
from gatehouse.engine.conversation.decoding.bodies import MAX_MODEL_NAME_CHARACTERS
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.envelope import openai_body, typed_event
from gatehouse.engine.conversation.dialects.openai_responses.shape import LOGPROBS, NO_LOGPROBS
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible, ResponseNotFound
from gatehouse.engine.conversation.form import Reasoning
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.secrets.owned_ids import unverified_response

#: query parameters that are passed on, by the operation's method and path below the response
_PARAMETERS: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("GET", ""): frozenset({"include", "include[]"}),
    ("GET", "/input_items"): frozenset({"after", "before", "include", "include[]", "limit", "order"}),
    ("DELETE", ""): frozenset(),
}
_INCLUDE: Final = frozenset({"include", "include[]"})
_MAX_QUERY_FIELDS: Final = 32

_request = msgspec.json.Decoder(KeptRequest)


class OpenAIKeptResponse:
    name = "openai_kept_response"
    operation: Literal["kept_response"] = "kept_response"
    feature_fields: Mapping[str, str] = {}

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        request = _request.decode(body)
        request = msgspec.structs.replace(request, parameters=_parameters(request))
        kept = unverified_response(request.public_id)
        name = "" if kept is None else f"{kept.provider}/{kept.model}"
        # The id is not verified yet, so the name may be any text. It is checked here because it is recorded.
        if not name or len(name) > MAX_MODEL_NAME_CHARACTERS or not name.isprintable():
            raise ResponseNotFound
        return ModelCall(dialect=self.name, model=name, stream=False, body={}, kept=request)

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        """Does nothing: no model is called."""

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Does nothing: the operation goes only to the provider that keeps the response."""

    def to_internal(self, call: ModelCall) -> NoReturn:
        raise NotConvertible("operations on kept responses are not converted")

    def render_reply(self, answer: Any, call: ModelCall) -> NoReturn:
        raise NotConvertible("operations on kept responses are not converted")

    def hides(self, reasoning: Reasoning, call: ModelCall) -> NoReturn:
        raise NotConvertible("operations on kept responses are not converted")

    def stream_writer(self, call: ModelCall) -> NoReturn:
        raise NotConvertible("operations on kept responses are not streamed")

    def view(self, event: bytes) -> NoReturn:
        raise NotConvertible("operations on kept responses are not streamed")

    def growth(self, event: bytes) -> NoReturn:
        raise NotConvertible("operations on kept responses are not streamed")

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return typed_event(error)


def _parameters(request: KeptRequest) -> list[tuple[str, str]]:
    """Return the query's parameters. Raises `InvalidField`."""
    try:
        parameters = parse_qsl(request.query, keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS)
    except ValueError:
        raise InvalidField("query", f"The query has more than {_MAX_QUERY_FIELDS} parameters.") from None
    passed = _PARAMETERS[request.method, request.path]
    for name, value in parameters:
        if name == "stream" and value.lower() == "true":
            raise InvalidField("stream", "A stored response cannot be streamed. Omit `stream`.")
        if name in _INCLUDE and value == LOGPROBS:
            raise InvalidField(name, NO_LOGPROBS)
    return [(name, value) for name, value in parameters if name in passed]
