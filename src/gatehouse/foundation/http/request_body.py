"""Reads a request's body, with limits for its size and for the time of reading."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.types import Receive

from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadRequest, ClientLeft, PayloadTooLarge

#: maximum size of an unread body that the server reads and discards in order to keep the connection open
MAX_DISCARDED_BODY_BYTES: Final = 64 * 1024


class BadLength(BadRequest):
    message = "Content-Length is not a number."


class BodyTooSlow(BadRequest):
    status = 408
    code = "request_timeout"

    def __init__(self, seconds: float) -> None:
        message = f"The request's body did not arrive within {seconds:g} seconds."
        super().__init__(message, headers={"Connection": "close"})


class RequestBody:
    """A request's body, which is not received before `read`. `headers` contains `content-length` and `expect` if the
    client sent them. `limit` is in bytes. One deadline applies to the whole body. `complete` is the body if all of it
    has arrived with the head of the request."""

    def __init__(
        self,
        headers: Mapping[str, str],
        receive: Receive,
        limit: int,
        deadlines: Deadlines,
        complete: bytes | None = None,
    ) -> None:
        self._content_length = headers.get("content-length")
        self._expects_continue = "expect" in headers
        self._receive = receive
        self.limit = limit
        self._deadlines = deadlines
        self._complete = complete
        #: is set when the whole body has been received
        self.whole = asyncio.Event()
        if complete is not None:
            self.whole.set()

    @property
    def blocks_reuse(self) -> bool:
        """Returns whether the connection must be closed after the response, because the unread body may be too large to
        discard. A client that waits for 100 Continue may or may not send its body after a different response."""
        if self.whole.is_set():
            return False
        length = self._content_length
        return (
            self._expects_continue or length is None or not length.isdecimal() or int(length) > MAX_DISCARDED_BODY_BYTES
        )

    async def read(self) -> bytes:
        """Returns the whole body. Raises `PayloadTooLarge` as soon as the body is known to exceed the limit, and
        `BodyTooSlow`, `BadLength`, `ClientLeft`."""
        if self._content_length is not None:
            if not self._content_length.isdecimal():
                raise BadLength
            if int(self._content_length) > self.limit:
                raise self._too_large()
        if self._complete is not None:
            if len(self._complete) > self.limit:
                raise self._too_large()
            return self._complete
        try:
            with self._deadlines.one():
                return await self._parts()
        except TimeoutError:
            raise BodyTooSlow(self._deadlines.seconds) from None

    async def _parts(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while not self.whole.is_set():
            part = await self._part()
            size += len(part)
            if size > self.limit:
                raise self._too_large()
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        if not message.get("more_body", False):
            self.whole.set()
        part: bytes = message.get("body", b"")
        return part

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"The request's body is too large. It may have {self.limit} bytes at most.")
