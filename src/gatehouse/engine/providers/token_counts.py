"""The operations of providers that count the tokens of a converted chat, as `ProviderDialect`s. The body of such an
operation contains the body of the chat."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, NoReturn

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.dialects.token_counts import MAX_COUNTED_TOKENS
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Request
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.bedrock import request as bedrock_request
from gatehouse.engine.providers.gemini import request as gemini_request
from gatehouse.engine.providers.gemini import resource

_Tokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNTED_TOKENS)]
#: fields of Vertex AI's operation
_VERTEX_FIELDS: Final = ("contents", "systemInstruction", "tools", "generationConfig")
#: fields of Converse that Bedrock's operation has
_CONVERSE_FIELDS: Final = ("messages", "system", "toolConfig", "additionalModelRequestFields")


class _GoogleCount(msgspec.Struct, rename="camel"):
    total_tokens: _Tokens


class _BedrockCount(msgspec.Struct, rename="camel"):
    input_tokens: _Tokens


_google_count = msgspec.json.Decoder(_GoogleCount)
_bedrock_count = msgspec.json.Decoder(_BedrockCount)


def _gemini_body(request: Request) -> dict[str, Any]:
    return {"generateContentRequest": {"model": resource(request.model), **gemini_request.write(request)}}


def _vertex_body(request: Request) -> dict[str, Any]:
    return _only(_VERTEX_FIELDS, gemini_request.write(request))


def _bedrock_body(request: Request) -> dict[str, Any]:
    return {"input": {"converse": _only(_CONVERSE_FIELDS, bedrock_request.write(request))}}


def _only(names: tuple[str, ...], body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}


class ConvertedCount:
    """A provider's operation that counts tokens: how its body is written, and its answer is read."""

    extra_fields: frozenset[str] = frozenset()

    def __init__(self, name: str, write: Callable[[Request], dict[str, Any]], read: Callable[[bytes], int]) -> None:
        self.name = name
        self._write = write
        self._read = read

    def from_internal(self, request: Request) -> dict[str, Any]:
        return self._write(request)

    def unwritten(self, request: Request) -> frozenset[str]:
        return frozenset()

    def parse_reply(self, body: bytes) -> Completion:
        return Completion(id="", model="", parts=(), finish="stop", usage=Usage(input_tokens=self._read(body)))

    def stream_reader(self) -> NoReturn:
        raise NotConvertible("token counts are not streamed")


def _read_google(body: bytes) -> int:
    return decode(_google_count, body).total_tokens


def _read_bedrock(body: bytes) -> int:
    return decode(_bedrock_count, body).input_tokens


CONVERTED_COUNTS: Final[Mapping[str, ConvertedCount]] = {
    dialect.name: dialect
    for dialect in (
        ConvertedCount("gemini_count", _gemini_body, _read_google),
        ConvertedCount("vertex_gemini_count", _vertex_body, _read_google),
        ConvertedCount("bedrock_count", _bedrock_body, _read_bedrock),
    )
}
