"""Embeddings on Bedrock, in the format of each model's vendor, by InvokeModel."""

from typing import Any, NoReturn

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.errors import InvalidField, NotConvertible
from gatehouse.engine.conversation.form import Embeddings, EmbeddingsRequest
from gatehouse.engine.conversation.usage import Usage

_AMAZON = "amazon.titan-embed-text"
_COHERE = "cohere.embed"

_Vector = tuple[float, ...]


class _ByType(msgspec.Struct):
    float: list[_Vector]


class _Answer(msgspec.Struct, rename="camel"):
    """An answer of either vendor. Cohere's has no token count, which is in a header instead."""

    embedding: _Vector | None = None
    input_text_token_count: int | None = None
    embeddings: list[_Vector] | _ByType | None = None


_answer = msgspec.json.Decoder(_Answer)


def makes_embeddings(model: str) -> bool:
    return _AMAZON in model or _COHERE in model


class BedrockEmbed:
    name = "bedrock_embed"
    extra_fields: frozenset[str] = frozenset()

    def unwritten(self, request: EmbeddingsRequest) -> frozenset[str]:
        return frozenset()

    def from_internal(self, request: EmbeddingsRequest) -> dict[str, Any]:
        if _COHERE in request.model:
            body: dict[str, Any] = {"texts": list(request.texts), "input_type": "search_document"}
            return body if request.dimensions is None else {**body, "output_dimension": request.dimensions}
        if _AMAZON not in request.model:
            raise InvalidField(
                "model", "`model`: of this provider's models only Amazon's and Cohere's make embeddings."
            )
        if len(request.texts) != 1:
            raise InvalidField("input", "`input`: this model takes one text a call.")
        body = {"inputText": request.texts[0]}
        return body if request.dimensions is None else {**body, "dimensions": request.dimensions}

    def parse_reply(self, body: bytes) -> Embeddings:
        answer = decode(_answer, body)
        if answer.embedding is not None:
            usage = Usage(input_tokens=max(answer.input_text_token_count or 0, 0))
            return Embeddings(model="", vectors=(answer.embedding,), usage=usage)
        if answer.embeddings is None:
            raise NotConvertible("no embeddings")
        vectors = answer.embeddings.float if isinstance(answer.embeddings, _ByType) else answer.embeddings
        return Embeddings(model="", vectors=tuple(vectors))

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("embeddings are not streamed")
