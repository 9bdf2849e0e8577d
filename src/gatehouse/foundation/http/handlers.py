"""Exception handlers. They render refusals, failed validation, unknown paths and unhandled exceptions in the error
format of the request's path."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation import errors
from gatehouse.foundation.errors import FieldFault, Refusal, Unprocessable
from gatehouse.foundation.http import variants
from gatehouse.foundation.http.envelopes import MAX_FAULTS, ErrorFormats, ParameterFault, rendered

_log = structlog.get_logger(__name__)

#: key in a request's state under which a handler stores the validation error of the response
FAILED_VALIDATION = "failed_validation"

#: maximum length of a field's name in a response, because the name comes from the caller
MAX_NAME_CHARACTERS = 100


class MalformedBody(errors.BadRequest):
    message = "The body is not valid JSON."


class MethodNotAllowed(errors.BadRequest):
    status = 405
    code = "method_not_allowed"
    message = "This path does not accept this method. The header Allow lists the methods it accepts."


class DatabaseUnavailable(errors.Unavailable):
    code = "database_unavailable"
    message = "The database is not available now. Try again in a moment. Check first whether a change was made."


_RETRY_SECONDS = 5

_BY_STATUS: dict[int, type[Refusal]] = {
    leaf.status: leaf
    for leaf in (
        errors.BadRequest, errors.Unauthenticated, errors.PaymentRequired, errors.Forbidden, errors.NotFound,
        MethodNotAllowed, errors.Conflict, errors.PayloadTooLarge, errors.Unprocessable, errors.TooManyRequests,
        errors.Internal, errors.BadGateway, errors.Unavailable, errors.GatewayTimeout,
    )
}  # fmt: skip


@cache
def _leaf(status: int) -> type[Refusal]:
    parent = errors.BadRequest if 400 <= status < 500 else errors.Internal
    return _BY_STATUS.get(status) or type(f"Status{status}", (parent,), {"status": status})


class ErrorResponses:
    """Renders errors in an application's formats. `unavailable` lists the exceptions of an unavailable database. The
    function `unknown` returns the response for a path without a route, or None for the usual 404."""

    def __init__(
        self,
        formats: ErrorFormats,
        unavailable: tuple[type[Exception], ...] = (),
        unknown: Callable[[Request], Refusal | Response | None] | None = None,
    ) -> None:
        self._formats = formats
        self._unknown = unknown
        self._unavailable = unavailable

    def to(self, scope: Scope, error: Refusal) -> Response:
        """Returns the response of a request (its ASGI scope) for a refusal."""
        try:
            variant = variants.variant_of(scope)
        except variants.UnknownVariant:
            variant = variants.Variant.A
        error_format = self._formats.for_path(scope["path"]).for_reader(Headers(scope=scope).get("accept", ""))
        answer = rendered(error, error_format, variant)
        return Response(answer.body, answer.status, answer.headers)

    async def of(self, request: Request, error: Exception) -> Response:
        """Returns the response for an exception that no route has handled."""
        if isinstance(error, Refusal):
            return await self.refusal(request, error)
        unavailable = isinstance(error, self._unavailable)
        return await (self.database_unavailable if unavailable else self.fault)(request, error)

    async def refusal(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        if isinstance(error, Unprocessable):
            request.scope.setdefault("state", {})[FAILED_VALIDATION] = error
        return self.to(request.scope, error)

    async def validation(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return await self.refusal(request, failed_validation(error.errors()))

    async def http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 404 and self._unknown is not None and "endpoint" not in request.scope:
            answer = self._unknown(request)
            if answer is not None:
                return answer if isinstance(answer, Response) else self.to(request.scope, answer)
        leaf = _leaf(error.status_code)
        # The framework's text explains a bad request. For other statuses it is a phrase such as "Not Found", and the
        # messages of our classes explain more.
        text = str(error.detail) if error.status_code == 400 else None
        headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
        return self.to(request.scope, leaf(text, headers=headers))

    async def database_unavailable(self, request: Request, error: Exception) -> Response:
        # Log only the first line: the following lines of PostgreSQL's errors may contain values of rows.
        reason = str(getattr(error, "orig", None) or error).split("\n", 1)[0]
        _log.warning("database.unavailable", path=request.scope["path"], reason=f"{type(error).__name__}: {reason}")
        return self.to(request.scope, DatabaseUnavailable(headers={"Retry-After": str(_RETRY_SECONDS)}))

    async def fault(self, request: Request, error: Exception) -> Response:
        _log.error("unhandled", path=request.scope["path"], method=request.scope["method"], exc_info=error)
        return self.to(request.scope, errors.Internal())


def _allowed(request: Request) -> str:
    """Returns the methods that the path accepts, separated by commas. The framework would list only the methods of the
    first route that matches."""
    methods: set[str] = set()
    for route in iter_route_contexts(request.app.router.routes):
        if _pattern(route.path or "").match(request.scope["path"]):
            methods |= route.methods or set()
    return ", ".join(sorted(methods))


@cache
def _pattern(path: str) -> re.Pattern[str]:
    """Returns the regular expression of a route's path. The cache has one entry for each route."""
    return compile_path(path)[0]


def failed_validation(faults: Sequence[Any]) -> Refusal:
    """Returns one error for Pydantic's list of faults. The error does not contain the inputs, which may be passwords.

    A malformed path parameter is a 404, because no resource can have such an id.
    """
    if any(fault["loc"][:1] == ("path",) for fault in faults):
        return errors.NotFound()
    if any(fault["type"] == "json_invalid" for fault in faults):
        return MalformedBody()
    # A parameter that belongs to both variants of a list is validated twice. Report its fault once.
    unique = {(fault["loc"], fault["msg"]): fault for fault in faults[:MAX_FAULTS]}
    return Unprocessable(faults=[_fault(fault) for fault in unique.values()])


def _fault(fault: dict[str, Any]) -> FieldFault:
    loc = tuple(part if isinstance(part, int) else part[:MAX_NAME_CHARACTERS] for part in fault["loc"])
    return ParameterFault(loc or ("body",), str(fault["msg"]).removeprefix("Value error, "), kind=fault["type"])


class _FaultMiddleware:
    """Middleware that responds to an unhandled exception with a 500 in the path's format. The framework would respond
    in plain text, and the exception would be logged twice."""

    def __init__(self, app: ASGIApp, *, responses: ErrorResponses) -> None:
        self._app = app
        self._responses = responses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:
            response = await self._responses.of(Request(scope), error)
            if started:
                raise  # the status has been sent, so only a closed connection can show the error to the client
            await response(scope, receive, send)


def install(
    app: FastAPI,
    formats: ErrorFormats | None = None,
    *,
    unavailable: tuple[type[Exception], ...] = (),
    unknown: Callable[[Request], Refusal | Response | None] | None = None,
) -> ErrorResponses:
    """Registers the handlers and returns their `ErrorResponses`, which has the parameters `unavailable` and `unknown`.
    Call this function before adding other middleware, so that the other middleware sees the rendered errors."""
    responses = ErrorResponses(formats or ErrorFormats(), unavailable, unknown)
    app.add_exception_handler(Refusal, responses.refusal)
    app.add_exception_handler(RequestValidationError, responses.validation)
    app.add_exception_handler(HTTPException, responses.http)
    for error_class in unavailable:
        app.add_exception_handler(error_class, responses.database_unavailable)
    app.add_exception_handler(Exception, responses.fault)
    app.add_middleware(_FaultMiddleware, responses=responses)
    return responses
