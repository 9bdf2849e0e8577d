"""Recognizes the requests to the gateway (model calls, MCP servers, scans and the list of models), and answers them.

`Gateway.serve` answers one request that comes from the HTTP/1.1 server (`ingress.http1`) or from an ASGI server. For an
ASGI server, the gateway is an ASGI application, and it passes all other requests to the application that it wraps.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

import msgspec
import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.engine.conversation.call import KeptRequest
from gatehouse.engine.exchange import Answer, CheckedCaller, Received
from gatehouse.engine.mcp import serving as mcp
from gatehouse.engine.run import Engine
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import ClientLeft, Forbidden, Internal, Refusal
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import rendered
from gatehouse.foundation.http.request_body import RequestBody
from gatehouse.ingress import receive as receiving
from gatehouse.ingress.answers import CLIENT_LEFT_MESSAGE, AsgiWriter, ResponseWriter, send_answer
from gatehouse.ingress.in_progress import InProgress
from gatehouse.ingress.models import error_format, model_list
from gatehouse.ingress.protocol import set_disconnect_callback
from gatehouse.ingress.receive import Target

T = TypeVar("T")

log = structlog.get_logger(__name__)

#: maps the path of each model call to its dialect
MODEL_CALLS: Final = {
    "/v1/chat/completions": "openai_chat",
    "/api/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
    "/v1/completions": "openai_completions",
    "/v1/moderations": "openai_moderations",
    "/v1/rerank": "cohere_rerank",
    "/v2/rerank": "cohere_rerank",
    "/v1/images/generations": "openai_image_generation",
    "/v1/images/edits": "openai_image_edits",
    "/v1/images/variations": "openai_image_variations",
    "/v1/audio/transcriptions": "openai_transcriptions",
    "/v1/audio/translations": "openai_translations",
    "/v1/audio/speech": "openai_speech",
    "/v1/embeddings": "openai_embeddings",
    "/v1/messages/count_tokens": "anthropic_token_count",
    "/v1/responses/input_tokens": "openai_token_count",
    "/v1/responses/compact": "openai_compaction",
}
#: operations on a response that a provider keeps: their paths below the response
KEPT_RESPONSE: Final = "/v1/responses/{response_id}"
_KEPT_RESPONSES: Final = "/v1/responses/"
_INPUT_ITEMS: Final = "/input_items"
_KEPT_DIALECT: Final = "openai_kept_response"
#: one MCP server of the organization, and all of them
MCP_SERVER: Final = mcp.PREFIX + "{server}"
_MCP_ROUTES: Final = frozenset({mcp.ALL, MCP_SERVER})
is_server_path: Final = re.compile(rf"{mcp.PREFIX}[a-z0-9][a-z0-9-]{{0,62}}").fullmatch
MODELS: Final = "/v1/models"
SCAN: Final = "/v1/scan"

#: Maps paths without `/v1` to the paths with `/v1`, for clients whose base URL lacks it. Requests to these paths are
#: answered, counted and recorded under the path with `/v1`.
ALIASES: Final = {path.removeprefix("/v1"): path for path in MODEL_CALLS if path.startswith("/v1/")}
_MODELS_ALIAS: Final = MODELS.removeprefix("/v1")

#: maps every path that the gateway answers to its methods
GATEWAY_PATHS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((*MODEL_CALLS, *ALIASES, SCAN), ("POST",)),
    **dict.fromkeys((MODELS, MODELS + "/{name:path}", _MODELS_ALIAS, _MODELS_ALIAS + "/{name:path}"), ("GET",)),
    KEPT_RESPONSE + _INPUT_ITEMS: ("GET",),
    KEPT_RESPONSE: ("GET", "DELETE"),
    **dict.fromkeys(sorted(_MCP_ROUTES), ("POST", "DELETE")),
}

#: a function that is called after each request, with the method, the route, the status and the seconds
Observe = Callable[[str, str, int, float], None]

#: the status in the metrics of a request whose client disconnects before the answer is complete
CLIENT_LEFT: Final = 499


class OriginRefused(Forbidden):
    code = "origin_refused"
    message = "Pages of this origin may not call MCP servers. CORS_ORIGINS lists the origins that may."


class RequestKind(msgspec.Struct, frozen=True):
    """One kind of request to the gateway. `method` and `route` are labels in the metrics."""

    method: str
    route: str
    #: the dialect of a model call; None for scans and the list of models
    dialect: str | None = None
    #: whether the request has a body; if not, the call is made from the path and the query
    has_body: bool = True


_POST_KINDS: Final[dict[str, RequestKind]] = {
    **{path: RequestKind("POST", path, dialect) for path, dialect in MODEL_CALLS.items()},
    SCAN: RequestKind("POST", SCAN),
}
_POST_KINDS.update({alias: _POST_KINDS[path] for alias, path in ALIASES.items()})
_MODELS_KIND: Final = RequestKind("GET", MODELS, has_body=False)
_KEPT_KINDS: Final = {
    (method, below): RequestKind(method, KEPT_RESPONSE + below, _KEPT_DIALECT, has_body=False)
    for method, below in (("GET", ""), ("DELETE", ""), ("GET", _INPUT_ITEMS))
}
_MCP_KINDS: Final = {
    (method, route): RequestKind(method, route, has_body=method == "POST")
    for method in ("POST", "DELETE")
    for route in _MCP_ROUTES
}
_MODEL_LIST_PATHS: Final = frozenset({MODELS, _MODELS_ALIAS})
_MODEL_PATH_PREFIXES: Final = tuple(path + "/" for path in _MODEL_LIST_PATHS)


def find_kind(method: str, path: str) -> RequestKind | None:
    """Return the kind of a request, or None if the gateway does not serve it. `path` must have no trailing slash."""
    if path == mcp.ALL or is_server_path(path):
        return _MCP_KINDS.get((method, mcp.ALL if path == mcp.ALL else MCP_SERVER))
    if method == "POST":
        return _POST_KINDS.get(path)
    if method in {"GET", "HEAD"} and (path in _MODEL_LIST_PATHS or path.startswith(_MODEL_PATH_PREFIXES)):
        return _MODELS_KIND
    if path.startswith(_KEPT_RESPONSES) and path not in _POST_KINDS:
        return _KEPT_KINDS.get((method, path[len(_KEPT_RESPONSES + _kept_id(path)) :]))
    return None


def _kept_id(path: str) -> str:
    """Return the id in the path of a kept response."""
    return path[len(_KEPT_RESPONSES) :].partition("/")[0]


def target_of(kind: RequestKind, path: str, query: str) -> Target:
    """Return what the request's target says. `path` and `query` are the parts of the target."""
    if kind.dialect is None:
        return Target(_canonical(kind, path), query)
    if kind.has_body:
        return Target(kind.route)
    below = kind.route.removeprefix(KEPT_RESPONSE)
    request = KeptRequest(method=kind.method, public_id=_kept_id(path), path=below, query=query)
    return Target(kind.route, body=msgspec.json.encode(request))


def _canonical(kind: RequestKind, path: str) -> str:
    """Return the path under which the request is limited, recorded and answered. For an alias, this is the path with
    `/v1`."""
    if kind.route in _MCP_ROUTES:
        return path
    if kind is _MODELS_KIND:
        return path if path.startswith(MODELS) else "/v1" + path
    return kind.route


class Gateway:
    """Answers the requests to the gateway. As an ASGI application, it passes all other requests to `application`."""

    def __init__(
        self,
        engine: Engine,
        application: ASGIApp,
        *,
        addresses: ClientAddresses,
        max_request_bytes: int,
        body_timeout_seconds: float,
        calls: InProgress,
        observe: Observe = lambda *_: None,
        origins: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self._application = application
        self.addresses = addresses
        self._origins = frozenset(origins)
        self._max_request_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removesuffix("/") if scope["type"] == "http" else ""
        kind = find_kind(scope["method"], path) if path else None
        if kind is None:
            await self._application(scope, receive, send)
            return
        target = target_of(kind, path, scope["query_string"].decode("latin-1"))
        headers, address = receiving.headers_of(scope), self.addresses.of_scope(scope)
        x = receiving.received_now(scope["method"], target, headers, address, kind.dialect)
        if kind.route in _MCP_ROUTES and not self._permits_origins(scope):
            await send_over_asgi(_error_answer(OriginRefused(), x), x, send)
            return
        body = self.body(x, receive)
        try:
            await while_connected(scope, receive, body.whole, self.serve(kind, x, body, AsgiWriter(send)))
        except ClientLeft:
            return

    def is_for_asgi(self, kind: RequestKind | None) -> bool:
        """Return whether an ASGI server must answer a request with an `Origin`: because a CORS layer is in front of the
        gateway, or because the origin must be checked."""
        return bool(self._origins) or (kind is not None and kind.route in _MCP_ROUTES)

    def _permits_origins(self, scope: Scope) -> bool:
        """Return whether a page of the request's origin may call MCP servers. A program sends no origin."""
        sent = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        return "*" in self._origins or self._origins.issuperset(sent)

    def body(self, x: Received, receive: Receive, complete: bytes | None = None) -> RequestBody:
        """Return the body of a request. `complete` is the complete body if it has already arrived."""
        return RequestBody(x.headers, receive, self._max_request_bytes, self._deadlines, complete)

    async def serve(self, kind: RequestKind, x: Received, body: RequestBody, writer: ResponseWriter) -> None:
        """Answer and count a request. Sends nothing if the client has disconnected."""
        status = CLIENT_LEFT
        try:
            with self._calls.one() as call:
                if kind.dialect is not None:
                    answer = await self._engine.answer(x, body.read if kind.has_body else None, call.let_in)
                elif kind.route in _MCP_ROUTES:
                    answer = await self._engine.tools.answer(x, body.read, call.let_in)
                elif kind is _MODELS_KIND:
                    answer = await self._models(x)
                else:
                    answer = await self._scan(x, body)
                await send_answer(answer, x, writer, closes=kind.has_body and body.blocks_reuse)
            status = answer.status
        except ClientLeft:
            return
        finally:
            self._observe(kind.method, kind.route, status, time.monotonic() - x.started)

    async def _scan(self, x: Received, body: RequestBody) -> Answer:
        return await self._identified(x, "dlp:read", lambda caller: self._engine.scan(caller, body.read))

    async def _models(self, x: Received) -> Answer:
        name = x.path.removeprefix(MODELS).removeprefix("/")
        return await self._identified(x, "api:read", lambda caller: model_list(self._engine, caller, name))

    async def _identified(self, x: Received, scope: str, work: Callable[[CheckedCaller], Awaitable[Answer]]) -> Answer:
        """Identify the caller, who must have `scope`, and return the answer of `work`. If `work` refuses the request,
        the answer has the headers of the caller's rate limit."""
        caller = None
        try:
            caller = await self._engine.identify(x, scope)
            return await work(caller)
        except ClientLeft:
            raise
        except Exception as error:
            if not isinstance(error, Refusal):
                log.exception("gateway.fault", request_id=x.request_id)
                error = Internal()
            if caller is not None and caller.rate is not None:
                error.headers = {**caller.rate.headers(), **error.headers}
            return _error_answer(error, x)


def _error_answer(error: Refusal, x: Received) -> Answer:
    response = rendered(error, error_format(x))
    return Answer(status=response.status, headers=response.headers, body=response.body)


async def send_over_asgi(answer: Answer, x: Received, send: Send) -> None:
    """Send an answer through an ASGI server."""
    await send_answer(answer, x, AsgiWriter(send))


async def while_connected(scope: Scope, receive: Receive, whole: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, and cancel it when the client disconnects. Then raise `ClientLeft`. `whole` must be set when `work`
    has read the body of the request."""
    task = asyncio.current_task()
    assert task is not None
    disconnected = False

    def on_disconnect() -> None:
        nonlocal disconnected
        disconnected = True
        task.cancel(CLIENT_LEFT_MESSAGE)

    async def watch() -> None:
        await whole.wait()
        while (await receive())["type"] != "http.disconnect":
            pass
        on_disconnect()

    watcher = None if set_disconnect_callback(scope, on_disconnect) else asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if disconnected:
            task.uncancel()
            raise ClientLeft from None
        raise
    finally:
        if watcher is None:
            set_disconnect_callback(scope, None)
        else:
            watcher.cancel()
