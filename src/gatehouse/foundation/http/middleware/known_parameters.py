"""Refuses unknown query parameters of GET requests, so that a list with a misspelt filter does not return all rows.

The check runs when the operation is about to succeed. So 401, 403 and 404 take precedence over this error, as they do
over an invalid body.
"""

from typing import Any, Final
from urllib.parse import parse_qsl

from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation.errors import Unprocessable
from gatehouse.foundation.http.envelopes import MAX_FAULTS, ParameterFault
from gatehouse.foundation.http.handlers import MAX_NAME_CHARACTERS, ErrorResponses

_MAX_NAMES_SHOWN: Final = 30


class KnownParameters:
    """Middleware that refuses unknown parameters. `tolerant` lists the path prefixes that accept unknown parameters:
    those of pages, probes, and protocols whose standard requires it."""

    def __init__(self, app: ASGIApp, *, responses: ErrorResponses, tolerant: tuple[str, ...] = ()) -> None:
        self._app = app
        self._responses = responses
        self._tolerant = tolerant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or not scope.get("query_string")
            or scope["path"].startswith(self._tolerant)
        ):
            await self._app(scope, receive, send)
            return
        refusal: Unprocessable | None = None

        async def send_unless_refused(message: Message) -> None:
            nonlocal refusal
            if message["type"] == "http.response.start" and message["status"] < 300:
                refusal = _refusal(scope)
            if refusal is None:
                await send(message)

        await self._app(scope, receive, send_unless_refused)
        if refusal is not None:
            await self._responses.to(scope, refusal)(scope, receive, send)


def _refusal(scope: Scope) -> Unprocessable | None:
    route = scope.get("route")
    if not isinstance(route, APIRoute):
        return None
    accepted = frozenset(_declared(route.dependant))
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    unknown = sorted({name for name, _ in query} - accepted)
    return unknown_parameters(unknown, accepted) if unknown else None


def unknown_parameters(unknown: list[str], accepted: frozenset[str]) -> Unprocessable:
    """Returns the error that identifies the unknown parameters and lists the accepted ones."""
    takes = f"it takes {', '.join(sorted(accepted)[:_MAX_NAMES_SHOWN])}" if accepted else "it takes none"
    message = f"is no parameter of this operation; {takes}"
    faults = [
        ParameterFault(("query", name[:MAX_NAME_CHARACTERS]), message, kind="extra_forbidden")
        for name in unknown[:MAX_FAULTS]
    ]
    return Unprocessable(faults=[*faults])


def _declared(dependant: Any) -> set[str]:
    """Returns the query parameters of an operation and its dependencies."""
    names = {field.alias for field in dependant.query_params}
    return names.union(*map(_declared, dependant.dependencies))
