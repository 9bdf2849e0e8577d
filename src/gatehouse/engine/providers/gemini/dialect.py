"""Gemini's dialects for chats and embeddings, as `ProviderDialect`s."""

from typing import Any, NoReturn

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Embeddings, EmbeddingsRequest, Request
from gatehouse.engine.providers.gemini import reply, request, resource
from gatehouse.engine.providers.gemini.stream import Reader


class GeminiGenerate:
    name = "gemini_generate"
    extra_fields: frozenset[str] = frozenset()

    def from_internal(self, request_: Request) -> dict[str, Any]:
        return request.write(request_)

    def unwritten(self, request_: Request) -> frozenset[str]:
        return request.unwritten(request_)

    def parse_reply(self, body: bytes) -> Completion:
        return reply.read(body)

    def stream_reader(self) -> Reader:
        return Reader()


class _ContentEmbedding(msgspec.Struct):
    values: tuple[float, ...]


class _Embedded(msgspec.Struct, rename="camel"):
    embeddings: list[_ContentEmbedding]
    usage_metadata: reply.UsageShape | None = None


_embedded = msgspec.json.Decoder(_Embedded)


class GeminiEmbed:
    name = "gemini_embed"
    extra_fields: frozenset[str] = frozenset()

    def unwritten(self, request_: EmbeddingsRequest) -> frozenset[str]:
        return frozenset()

    def from_internal(self, request_: EmbeddingsRequest) -> dict[str, Any]:
        options = {} if request_.dimensions is None else {"outputDimensionality": request_.dimensions}
        model = resource(request_.model)
        return {
            "requests": [{"model": model, "content": {"parts": [{"text": text}]}, **options} for text in request_.texts]
        }

    def parse_reply(self, body: bytes) -> Embeddings:
        answer = decode(_embedded, body)
        vectors = tuple(vector.values for vector in answer.embeddings)
        return Embeddings(model="", vectors=vectors, usage=reply.usage_of(answer.usage_metadata))

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("embeddings are not streamed")
