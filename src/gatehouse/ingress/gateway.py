"""Model calls, scans and the list of models: which requests are the gateway's, and how each is answered.

`Gateway.serve` answers one, whoever took it off the wire: the lane (`ingress.lane`), or an ASGI server, for which the
gateway is an application itself. There, everything that is not the gateway's goes on to the application behind it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import msgspec
import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.engine.exchange import Answer, ClientLeft, Identified, Received
from gatehouse.engine.run import Engine
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Internal, Refusal
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import rendered
from gatehouse.ingress import receive as receiving
from gatehouse.ingress.answers import LEFT, AsgiOut, Out, give
from gatehouse.ingress.in_progress import InProgress
from gatehouse.ingress.models import error_form, model_list
from gatehouse.ingress.protocol import on_client_left
from gatehouse.ingress.receive import Body

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: which dialect a path speaks
MODEL_CALLS: Final = {
    "/v1/chat/completions": "openai_chat",
    "/api/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
    "/v1/embeddings": "openai_embeddings",
}
MODELS: Final = "/v1/models"
SCAN: Final = "/v1/scan"

#: Paths that clients call whose base URL lacks `/v1`. They are answered, counted and recorded as the paths with it.
ALIASES: Final = {path.removeprefix("/v1"): path for path in MODEL_CALLS if path.startswith("/v1/")}
_MODELS_ALIAS: Final = MODELS.removeprefix("/v1")

#: every path that the gateway answers itself, with the method
GATEWAY_PATHS: Final = {
    **dict.fromkeys((*MODEL_CALLS, *ALIASES, SCAN), "POST"),
    **dict.fromkeys((MODELS, MODELS + "/{name:path}", _MODELS_ALIAS, _MODELS_ALIAS + "/{name:path}"), "GET"),
}

#: told of each answered request: method, route, status, seconds
Observe = Callable[[str, str, int, float], None]

#: the status under which a request is counted whose client left before its answer was complete
CLIENT_LEFT: Final = 499


class Kind(msgspec.Struct, frozen=True):
    """What the gateway is asked for. `method` and `route` are those it is counted under."""

    method: str
    route: str
    #: of a model call
    dialect: str | None = None


_POSTED: Final[dict[str, Kind]] = {
    **{path: Kind("POST", path, dialect) for path, dialect in MODEL_CALLS.items()},
    SCAN: Kind("POST", SCAN),
}
_POSTED.update({alias: _POSTED[path] for alias, path in ALIASES.items()})
_MODELS: Final = Kind("GET", MODELS)
_MODEL_LISTS: Final = frozenset({MODELS, _MODELS_ALIAS})
_BELOW_MODEL_LISTS: Final = tuple(path + "/" for path in _MODEL_LISTS)


def find(method: str, path: str) -> Kind | None:
    """None for what is not the gateway's. The path has no slash at its end, and may never have had one."""
    if method == "POST":
        return _POSTED.get(path)
    if method in {"GET", "HEAD"} and (path in _MODEL_LISTS or path.startswith(_BELOW_MODEL_LISTS)):
        return _MODELS
    return None


def canonical(kind: Kind, path: str) -> str:
    """The path under which limits, records and answers know the request: that of an alias has `/v1` in front."""
    if kind is _MODELS:
        return path if path.startswith(MODELS) else "/v1" + path
    return kind.route


class Gateway:
    """In front of `behind`, which gets all other paths and methods."""

    def __init__(
        self,
        engine: Engine,
        behind: ASGIApp,
        *,
        addresses: ClientAddresses,
        max_request_bytes: int,
        body_timeout_seconds: float,
        calls: InProgress,
        observe: Observe = lambda *_: None,
        cross_origin: bool = False,
    ) -> None:
        self._engine = engine
        self._behind = behind
        self.addresses = addresses
        #: whether something in front of this tells browsers which pages may call
        self.cross_origin = cross_origin
        self._max_request_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removesuffix("/") if scope["type"] == "http" else ""
        kind = find(scope["method"], path) if path else None
        if kind is None:
            await self._behind(scope, receive, send)
            return
        x = receiving.head(scope, self.addresses, kind.dialect)
        x.path = canonical(kind, path)
        body = self.body(x, receive)
        try:
            await while_connected(scope, receive, body.whole, self.serve(kind, x, body, AsgiOut(send)))
        except ClientLeft:
            return

    def body(self, x: Received, receive: Receive, here: bytes | None = None) -> Body:
        """The body of a request; `here` is all of it, where it has arrived."""
        return Body(x, receive, self._max_request_bytes, self._deadlines, here)

    async def serve(self, kind: Kind, x: Received, body: Body, out: Out) -> None:
        """Answers it, and counts it. A client that has left is answered by nothing."""
        status = CLIENT_LEFT
        try:
            with self._calls.one() as call:
                if kind.dialect is not None:
                    answer = await self._engine.answer(x, body.read, call.let_in)
                elif kind is _MODELS:
                    answer = await self._models(x)
                else:
                    answer = await self._scanned(x, body)
                await give(answer, x, out, closes=kind is not _MODELS and body.in_the_way)
            status = answer.status
        except ClientLeft:
            return
        finally:
            self._observe(kind.method, kind.route, status, time.monotonic() - x.started)

    async def _scanned(self, x: Received, body: Body) -> Answer:
        return await self._identified(x, "dlp:read", lambda caller: self._engine.scan(caller, body.read))

    async def _models(self, x: Received) -> Answer:
        name = x.path.removeprefix(MODELS).removeprefix("/")
        return await self._identified(x, "api:read", lambda caller: model_list(self._engine, caller, name))

    async def _identified(self, x: Received, scope: str, work: Callable[[Identified], Awaitable[Answer]]) -> Answer:
        """What is done for a caller who has the scope; a refusal carries the limit that the request counted in."""
        identified = None
        try:
            identified = await self._engine.identify(x, scope)
            return await work(identified)
        except ClientLeft:
            raise
        except Exception as error:
            if not isinstance(error, Refusal):
                log.exception("gateway.fault", request_id=x.request_id)
                error = Internal()
            if identified is not None and identified.rate is not None:
                error.headers = {**identified.rate.headers(), **error.headers}
            return _told(error, x)


def _told(error: Refusal, x: Received) -> Answer:
    told = rendered(error, error_form(x))
    return Answer(status=told.status, headers=told.headers, body=told.body)


async def write(answer: Answer, x: Received, send: Send) -> None:
    """To the client of an ASGI server."""
    await give(answer, x, AsgiOut(send))


async def while_connected(scope: Scope, receive: Receive, whole: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Does the work, unless the client leaves: then it is cancelled at once. `whole` is set once the work has read the
    request's body. Raises `ClientLeft`."""
    task = asyncio.current_task()
    assert task is not None
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        task.cancel(LEFT)

    async def watch() -> None:
        await whole.wait()
        while (await receive())["type"] != "http.disconnect":
            pass
        leave()

    watcher = None if on_client_left(scope, leave) else asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if left:
            task.uncancel()
            raise ClientLeft from None
        raise
    finally:
        if watcher is None:
            on_client_left(scope, None)
        else:
            watcher.cancel()
