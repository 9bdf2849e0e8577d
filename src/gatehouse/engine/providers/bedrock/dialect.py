"""Converse, Bedrock's dialect for the models of all vendors, as a `ProviderDialect`."""

from typing import Any

from gatehouse.engine.conversation.form import Completion, Request
from gatehouse.engine.providers.bedrock import reply, request
from gatehouse.engine.providers.bedrock.stream import Reader


class BedrockConverse:
    name = "bedrock_converse"
    extra_fields: frozenset[str] = frozenset()

    def from_internal(self, request_: Request) -> dict[str, Any]:
        return request.write(request_)

    def unwritten(self, request_: Request) -> frozenset[str]:
        return request.unwritten(request_)

    def parse_reply(self, body: bytes) -> Completion:
        return reply.read(body)

    def stream_reader(self) -> Reader:
        return Reader()
