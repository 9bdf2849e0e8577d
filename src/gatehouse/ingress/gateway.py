"""Model calls on plain ASGI. Everything that is not the gateway's goes on to the application behind it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Answer, ClientLeft, Received
from gatehouse.engine.run import Engine
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Internal, Refusal, Unavailable
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import rendered
from gatehouse.ingress import receive as receiving
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

#: every path that the gateway answers itself, with the method
GATEWAY_PATHS: Final = {
    **dict.fromkeys(MODEL_CALLS, "POST"), SCAN: "POST", MODELS: "GET", MODELS + "/{name:path}": "GET",
}  # fmt: skip

#: told of each answered request: method, route, status, seconds
Observe = Callable[[str, str, int, float], None]

#: the word by which a request is cancelled whose client has left
_LEFT: Final = "client left"

#: the status under which a request is counted whose client left before its answer was complete
CLIENT_LEFT: Final = 499


class Stopping(Unavailable):
    code = "server_stopping"
    message = "The gateway is being stopped; the answer is incomplete."


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
    ) -> None:
        self._engine = engine
        self._behind = behind
        self._addresses = addresses
        self._max_request_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"].removesuffix("/")
            if scope["method"] == "POST" and (dialect := MODEL_CALLS.get(path)) is not None:
                received = receiving.head(scope, self._addresses, dialect)
                received.path = path
                status = CLIENT_LEFT
                try:
                    status = await self._model_call(scope, received, receive, send)
                finally:
                    self._observe("POST", path, status, time.monotonic() - received.started)
                return
            if scope["method"] == "POST" and path == SCAN:
                await self._scan(scope, receiving.head(scope, self._addresses), receive, send)
                return
            if scope["method"] in {"GET", "HEAD"} and (path == MODELS or path.startswith(MODELS + "/")):
                await self._models(receiving.head(scope, self._addresses), path, send)
                return
        await self._behind(scope, receive, send)

    async def _model_call(self, scope: Scope, x: Received, receive: Receive, send: Send) -> int:
        """Answers it. Returns the status that the client was given."""
        body = Body(x, receive, self._max_request_bytes, self._deadlines)
        try:
            status = await while_connected(scope, receive, body.whole, self._answer(x, body, send))
        except ClientLeft:
            return CLIENT_LEFT
        if body.in_the_way:
            await body.discard()
            await send({"type": "http.response.body", "body": b""})
        return status

    async def _answer(self, x: Received, body: Body, send: Send) -> int:
        with self._calls.one() as call:
            answer = await self._engine.answer(x, body.read, call.let_in)
            await write(answer, x, send, ended=not body.in_the_way)
        return answer.status

    async def _scan(self, scope: Scope, x: Received, receive: Receive, send: Send) -> None:
        body = Body(x, receive, self._max_request_bytes, self._deadlines)
        status = CLIENT_LEFT
        try:
            answer = await while_connected(scope, receive, body.whole, self._scanned(x, body))
            await write(answer, x, send, ended=not body.in_the_way)
            status = answer.status
            if body.in_the_way:
                await body.discard()
                await send({"type": "http.response.body", "body": b""})
        except ClientLeft:
            return
        finally:
            self._observe("POST", SCAN, status, time.monotonic() - x.started)

    async def _scanned(self, x: Received, body: Body) -> Answer:
        try:
            return await self._engine.scan(x, body.read)
        except Refusal as error:
            return _told(error, x)
        except ClientLeft:
            raise
        except Exception:
            log.exception("gateway.fault", request_id=x.request_id)
            return _told(Internal(), x)

    async def _models(self, x: Received, path: str, send: Send) -> None:
        identified = None
        try:
            identified = await self._engine.identify(x, "api:read")
            answer = await model_list(self._engine, identified, path.removeprefix(MODELS).removeprefix("/"))
        except Exception as error:
            if not isinstance(error, Refusal):
                log.exception("gateway.fault", request_id=x.request_id)
                error = Internal()
            if identified is not None and identified.rate is not None:
                error.headers = {**identified.rate.headers(), **error.headers}
            answer = _told(error, x)
        await write(answer, x, send)
        self._observe("GET", MODELS, answer.status, time.monotonic() - x.started)


def _told(error: Refusal, x: Received) -> Answer:
    told = rendered(error, error_form(x))
    return Answer(status=told.status, headers=told.headers, body=told.body)


async def write(answer: Answer, x: Received, send: Send, *, ended: bool = True) -> None:
    """With `ended` false the connection is to be closed, and the last message of a whole answer left to the caller."""
    # A catalog may name its models in any script: what a header cannot hold is told by the body's `model`.
    headers = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in answer.headers.items()]
    headers.append((b"x-request-id", x.request_id.encode()))
    if not ended and "Connection" not in answer.headers:
        headers.append((b"connection", b"close"))
    if answer.stream is None:
        headers.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body, "more_body": not ended})
        return
    try:
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for block in answer.stream:
            await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError as cancelled:
        await _closed(answer.stream)
        if cancelled.args != (_LEFT,) and x.dialect is not None:
            # The server itself stops: the client must not take the cut for the answer's end.
            with contextlib.suppress(Exception):
                await send({"type": "http.response.body", "body": DIALECTS[x.dialect].render_stream_error(Stopping())})
        raise
    finally:
        await _closed(answer.stream)


async def _closed(stream: AsyncIterator[bytes]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


async def while_connected(scope: Scope, receive: Receive, whole: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Does the work, unless the client leaves: then it is cancelled at once. `whole` is set once the work has read the
    request's body. Raises `ClientLeft`."""
    task = asyncio.current_task()
    assert task is not None
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        task.cancel(_LEFT)

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
