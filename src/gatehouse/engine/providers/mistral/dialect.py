"""Mistral's dialects for chats and embeddings."""

from typing import Any, NoReturn

from gatehouse.engine.conversation.dialect import StreamReader
from gatehouse.engine.conversation.dialects.openai_chat import OpenAIChat
from gatehouse.engine.conversation.dialects.openai_embeddings import OpenAIEmbeddings
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Embeddings, EmbeddingsRequest, Request
from gatehouse.engine.providers.mistral import request

#: Answers have OpenAI's format.
_chat, _embeddings = OpenAIChat(), OpenAIEmbeddings()


class MistralChat:
    name = "mistral_chat"
    extra_fields = request.EXTRA_FIELDS

    def from_internal(self, request_: Request) -> dict[str, Any]:
        return request.write(request_)

    def unwritten(self, request_: Request) -> frozenset[str]:
        return request.unwritten(request_)

    def parse_reply(self, body: bytes) -> Completion:
        return _chat.parse_reply(body)

    def stream_reader(self) -> StreamReader:
        return _chat.stream_reader()


class MistralEmbeddings:
    name = "mistral_embeddings"
    extra_fields: frozenset[str] = frozenset()

    def unwritten(self, request_: EmbeddingsRequest) -> frozenset[str]:
        return frozenset()

    def from_internal(self, request_: EmbeddingsRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"model": request_.model, "input": list(request_.texts)}
        return body if request_.dimensions is None else {**body, "output_dimension": request_.dimensions}

    def parse_reply(self, body: bytes) -> Embeddings:
        return _embeddings.parse_reply(body)

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("embeddings are not streamed")
