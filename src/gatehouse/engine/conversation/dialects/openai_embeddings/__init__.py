"""Embeddings as OpenAI's clients speak them. No other dialect has them, so nothing is ever converted."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from gatehouse.engine.conversation.answers import UsageIn
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding import CallShape, decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.envelope import openai_body, openai_event
from gatehouse.engine.conversation.dialects.openai_chat.tap import ChatTap
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible
from gatehouse.engine.conversation.form import Completion, Request
from gatehouse.engine.conversation.usage import Usage
from gatehouse.foundation.errors import Refusal


class EmbeddingsShape(CallShape, gc=False, kw_only=True):
    input: str | Annotated[list[str | int | list[int]], msgspec.Meta(min_length=1)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1)] | None = None


_usage_in = UsageIn("data", UsageShape)


class OpenAIEmbeddings:
    name = "openai_embeddings"
    operation: Literal["embeddings"] = "embeddings"

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, EmbeddingsShape)
        if call.stream:
            raise InvalidField("stream", "Embeddings cannot be streamed.")
        return call

    def instruct(self, body: dict[str, Any], text: str) -> None:
        return None

    def forward(self, call: ModelCall, model: str) -> tuple[bytes, ChatTap]:
        return msgspec.json.encode({**call.body, "model": model}), ChatTap(withhold_usage=False)

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(_usage_in(body))

    def to_internal(self, call: ModelCall) -> Request:
        _only_embeddings()

    def from_internal(self, request: Request) -> dict[str, Any]:
        _only_embeddings()

    def parse_reply(self, body: bytes) -> Completion:
        _only_embeddings()

    def render_reply(self, completion: Completion) -> bytes:
        _only_embeddings()

    def stream_reader(self) -> NoReturn:
        _only_embeddings()

    def stream_writer(self, call: ModelCall) -> NoReturn:
        _only_embeddings()

    def view(self, event: bytes) -> NoReturn:
        _only_embeddings()

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return openai_event(error)


def _only_embeddings() -> NoReturn:
    raise NotConvertible("embeddings have no other dialect")
