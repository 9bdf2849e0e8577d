"""Cohere's rerank API, which Jina, vLLM and other servers also offer."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.decoding.bodies import CallShape
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.openai_chat.shape import Positive
from gatehouse.engine.conversation.dialects.passing_only import PassingOnly
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.usage import Usage

#: maximum number of documents of a call
MAX_DOCUMENTS: Final = 10_000


class _RerankShape(CallShape, gc=False, kw_only=True):
    query: str
    documents: Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1, max_length=MAX_DOCUMENTS)]
    top_n: Positive | None = None
    return_documents: bool | None = None


class _Answer(msgspec.Struct):
    results: list[msgspec.Raw]
    #: in answers of Jina and vLLM
    usage: Any = None
    #: in answers of Cohere
    meta: Any = None


_answer = msgspec.json.Decoder(_Answer)


class CohereRerank(PassingOnly):
    name = "cohere_rerank"
    operation: Literal["rerank"] = "rerank"
    shape = _RerankShape

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = super().decode(body, headers)
        for index, document in enumerate(call.body["documents"]):
            if isinstance(document, dict) and not isinstance(document.get("text"), str):
                path = f"documents[{index}].text"
                raise InvalidField(path, f"`{path}` must be a string.")
        return call

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        body, lost = super().forward(call, model, provider)
        # Cohere's current API and other servers accept only strings, so an object with only a text is sent as a string.
        body["documents"] = [
            document["text"] if isinstance(document, dict) and len(document) == 1 else document
            for document in body["documents"]
        ]
        return body, lost

    def check_reply(self, body: bytes) -> Usage | None:
        answer = decode(_answer, body)
        tokens = (
            _count(answer.usage, "prompt_tokens")
            or _count(answer.usage, "total_tokens")
            or _count(_member(answer.meta, "tokens"), "input_tokens")
        )
        return Usage(input_tokens=tokens) if tokens else None


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _count(value: Any, name: str) -> int:
    """Return a number of tokens, or 0 if there is none."""
    number = _member(value, name)
    if type(number) is float and number.is_integer():
        number = int(number)
    return number if type(number) is int and number > 0 else 0
