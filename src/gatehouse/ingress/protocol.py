"""uvicorn's protocol, which also tells a request in progress that its client has left.

By the ASGI standard an application learns that by waiting for a message, which takes a task a request; this costs a
dictionary entry. Where another server runs the application, the gateway waits for the message.
"""

from collections.abc import Callable
from typing import Any, Final

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

#: key in `scope["state"]`: a list for one callback
_LEFT: Final = "gatehouse.client_left"


class WatchfulProtocol(HttpToolsProtocol):
    #: the request being answered; pipelined ones wait behind it
    _answering: RequestResponseCycle | None = None

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
