"""uvicorn's protocol with two additions.

It tells a request in progress that its client has left. By the ASGI standard an application learns that by waiting for
a message, which takes a task a request; this costs a dictionary entry. Where another server runs the application, the
gateway waits for the message.

And what is written within one turn of the loop leaves in one system call: head and body, or several events.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

#: key in `scope["state"]`: a list for one callback
_LEFT: Final = "gatehouse.client_left"


class _Corked:
    """A transport that gathers writes until the turn is over. Everything else is the transport's own."""

    __slots__ = ("_due", "_loop", "_pieces", "_size", "_transport")

    #: beyond this nothing is gathered: the transport's own high-water mark has to see it
    MOST: Final = 64 * 1024

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0
        self._due = False

    def write(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self.MOST:
            self._flush()
        elif not self._due:
            self._due = True
            self._loop.call_soon(self._turn_over)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _turn_over(self) -> None:
        self._due = False
        self._flush()

    def _flush(self) -> None:
        if self._pieces:
            gathered = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces, self._size = [], 0
            self._transport.write(gathered)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class WatchfulProtocol(HttpToolsProtocol):
    #: the request being answered; pipelined ones wait behind it
    _answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Corked(transport, self.loop)))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.scope["state"][_LEFT] = None
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        cycle = self._answering
        if cycle is not None and not cycle.response_complete:
            tell = cycle.scope["state"].get(_LEFT)
            if tell is not None:
                tell()


def on_client_left(scope: Scope, tell: Callable[[], object] | None) -> bool:
    """Has `tell` called once the client has left, or nobody any more with None. False: this server cannot tell."""
    state = scope.get("state")
    if state is None or _LEFT not in state:
        return False
    state[_LEFT] = tell
    return True
