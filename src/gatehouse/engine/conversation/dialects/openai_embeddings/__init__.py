"""OpenAI's embeddings API, which has no streams."""

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.decoding.answers import UsageReader, decode
from gatehouse.engine.conversation.decoding.bodies import CallShape, decode_call
from gatehouse.engine.conversation.decoding.optional_fields import integer
from gatehouse.engine.conversation.dialect import NO_HEADERS, NOTHING_LOST
from gatehouse.engine.conversation.dialects.envelope import openai_body, openai_event
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible
from gatehouse.engine.conversation.form import Embeddings, EmbeddingsRequest, Reasoning
from gatehouse.engine.conversation.usage import Usage
from gatehouse.foundation.errors import Refusal


class EmbeddingsShape(CallShape, gc=False, kw_only=True):
    input: str | Annotated[list[str | int | list[int]], msgspec.Meta(min_length=1)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1)] | None = None


class _Vector(msgspec.Struct):
    embedding: tuple[float, ...]


class _Answer(msgspec.Struct):
    data: list[_Vector]
    model: str = ""
    usage: UsageShape | None = None


_usage_in = UsageReader("data", UsageShape)
_answer = msgspec.json.Decoder(_Answer)


#: fields that are converted, or do not concern the provider
_CONVERTED_FIELDS: Final = frozenset({"dimensions", "encoding_format", "input", "model", "stream"})


class OpenAIEmbeddings:
    name = "openai_embeddings"
    operation: Literal["embeddings"] = "embeddings"

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, EmbeddingsShape)
        if call.stream:
            raise InvalidField("stream", "Embeddings cannot be streamed.")
        return call

    feature_fields: Mapping[str, str] = {}
    extra_fields: frozenset[str] = frozenset()

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        return None

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        return {**call.body, "model": model}, NOTHING_LOST

    def tap(self, call: ModelCall, model: str, provider: str = "") -> NoReturn:
        raise NotConvertible("embeddings are not streamed")

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(_usage_in(body))

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Does nothing: `to_internal` refuses input that cannot be converted."""

    def to_internal(self, call: ModelCall) -> EmbeddingsRequest:
        input_ = call.body["input"]
        texts = [input_] if isinstance(input_, str) else input_
        if not all(isinstance(item, str) for item in texts):
            raise InvalidField("input", "`input`: this provider accepts texts only, not tokens.")
        return EmbeddingsRequest(
            model=call.model,
            texts=tuple(texts),
            dimensions=integer(call.body, "dimensions"),
            lost=tuple(unread(call.body, _CONVERTED_FIELDS)),
        )

    def from_internal(self, request: EmbeddingsRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"model": request.model, "input": list(request.texts), "encoding_format": "float"}
        return body if request.dimensions is None else {**body, "dimensions": request.dimensions}

    def unwritten(self, request: EmbeddingsRequest) -> frozenset[str]:
        return frozenset()

    def parse_reply(self, body: bytes) -> Embeddings:
        answer = decode(_answer, body)
        vectors = tuple(item.embedding for item in answer.data)
        return Embeddings(model=answer.model, vectors=vectors, usage=usage_of(answer.usage))

    def render_reply(self, answer: Embeddings, call: ModelCall) -> bytes:
        encode = _as_base64 if call.body.get("encoding_format") == "base64" else list
        body: dict[str, Any] = {
            "object": "list",
            "model": answer.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": encode(vector)}
                for index, vector in enumerate(answer.vectors)
            ],
        }
        usage = answer.usage or Usage()
        # Clients of this dialect expect the field in every answer.
        body["usage"] = {"prompt_tokens": usage.input_tokens, "total_tokens": usage.input_tokens}
        return msgspec.json.encode(body)

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        return False

    def stream_reader(self) -> NoReturn:
        _never_streamed()

    def stream_writer(self, call: ModelCall) -> NoReturn:
        _never_streamed()

    def view(self, event: bytes) -> NoReturn:
        _never_streamed()

    def growth(self, event: bytes) -> NoReturn:
        _never_streamed()

    def render_error(self, error: Refusal) -> bytes:
        return openai_body(error)

    def render_stream_error(self, error: Refusal) -> bytes:
        return openai_event(error)


def _as_base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _never_streamed() -> NoReturn:
    raise NotConvertible("embeddings are not streamed")
