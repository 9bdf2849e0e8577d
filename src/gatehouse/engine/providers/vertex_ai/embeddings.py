"""Vertex AI's embeddings: one format for Gemini's models, another for the older text models."""

from typing import Any, NoReturn

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Embeddings, EmbeddingsRequest
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.gemini.dialect import GeminiEmbed


class VertexGeminiEmbed(GeminiEmbed):
    name = "vertex_gemini_embed"

    def from_internal(self, request_: EmbeddingsRequest) -> dict[str, Any]:
        options = (
            {} if request_.dimensions is None else {"embedContentConfig": {"outputDimensionality": request_.dimensions}}
        )
        contents = ({"role": "user", "parts": [{"text": text}]} for text in request_.texts)
        return {"requests": [{"content": content, **options} for content in contents]}


class _Statistics(msgspec.Struct, frozen=True):
    token_count: float = 0


class _Embeddings(msgspec.Struct):
    values: tuple[float, ...]
    statistics: _Statistics = _Statistics()


class _Prediction(msgspec.Struct):
    embeddings: _Embeddings


class _Predicted(msgspec.Struct):
    predictions: list[_Prediction]


_predicted = msgspec.json.Decoder(_Predicted)


class VertexPredict:
    name = "vertex_predict"
    extra_fields: frozenset[str] = frozenset()

    def unwritten(self, request: EmbeddingsRequest) -> frozenset[str]:
        return frozenset()

    def from_internal(self, request: EmbeddingsRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"instances": [{"content": text} for text in request.texts]}
        if request.dimensions is not None:
            body["parameters"] = {"outputDimensionality": request.dimensions}
        return body

    def parse_reply(self, body: bytes) -> Embeddings:
        vectors = [prediction.embeddings for prediction in decode(_predicted, body).predictions]
        tokens = sum(max(int(vector.statistics.token_count), 0) for vector in vectors)
        return Embeddings(
            model="",
            vectors=tuple(vector.values for vector in vectors),
            usage=Usage(input_tokens=tokens) if tokens else None,
        )

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("embeddings are not streamed")
