"""The sandbox as an `Outbound` within the process, with the timeouts and failures of a network."""

import asyncio
from collections.abc import AsyncIterator, Mapping

from gatehouse.engine.providers.sandbox.answering import CutOff, SandboxAnswer, answer
from gatehouse.foundation.outbound import BrokenOff, OutboundReply, OutboundRequest, OutboundTimeout, ReplyTooLarge


class SandboxOutbound:
    async def send(self, request: OutboundRequest) -> OutboundReply:
        if request.before_first_byte is not None:
            request.before_first_byte()
        path = request.url.removeprefix("sandbox:")
        try:
            async with asyncio.timeout(request.first_byte_timeout):
                return SandboxReply(await answer(request.method, path, request.body, request.headers))
        except TimeoutError:
            raise OutboundTimeout from None

    async def close(self) -> None:
        pass


class SandboxReply:
    __slots__ = ("_answer", "headers", "status")

    def __init__(self, answer: SandboxAnswer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def read(self, limit: int) -> bytes:
        parts = [chunk async for chunk in self.chunks()]
        if sum(map(len, parts)) > limit:
            raise ReplyTooLarge
        return b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._answer.cut:
            yield self._answer.body[: len(self._answer.body) // 2]
            raise BrokenOff
        if self._answer.stream is None:
            yield self._answer.body
            return
        try:
            async for event in self._answer.stream:
                yield event
        except CutOff:
            raise BrokenOff from None

    async def close(self) -> None:
        pass
