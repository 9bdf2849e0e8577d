"""`POST /v1/responses/compact`: compacts a conversation. Only providers with the Responses API offer it."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.bodies import CallShape, decode_call
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.openai_responses import OpenAIResponses
from gatehouse.engine.conversation.dialects.openai_responses.tools import read_tools
from gatehouse.engine.conversation.errors import InvalidField, ResponsesApiRequired


class _CompactionShape(CallShape, gc=False, kw_only=True):
    input: str | Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[dict[str, Any]] | None = None


class OpenAICompaction(OpenAIResponses):
    name = "openai_compaction"
    # The API has no field that limits the output.
    limit_field = ""

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = decode_call(self.name, body, _CompactionShape)
        if call.stream:
            raise InvalidField("stream", "A compaction cannot be streamed.")
        if call.body.get("input") is None and call.body.get("previous_response_id") is None:
            raise InvalidField("input", "`input` or `previous_response_id` is required.")
        read_tools(call.body, accepts_hosted=True)
        return call

    def refuse_unconvertible(self, call: ModelCall) -> None:
        raise ResponsesApiRequired
