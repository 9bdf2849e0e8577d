"""`/x` and `/x/` answer alike, without a redirect (decisions 1.6): a redirected POST loses its body in many clients.

The routes are written as the contract writes them, some with and some without a trailing slash. This looks up which
form the route table has and hands the request on under it.
"""

from collections.abc import Callable, Iterable
from re import Pattern

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send


class _Forms:
    """Templates by the form they were written in. Mounts take everything below them as it is."""

    def __init__(self, templates: Iterable[str], mounts: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._slashed: list[Pattern[str]] = []
        self._mounts = tuple(mount.rstrip("/") + "/" for mount in mounts if mount.rstrip("/"))
        for template in set(templates):
            if "{" not in template:
                self._exact.add(template)
            elif template.endswith("/"):
                self._slashed.append(compile_path(template)[0])

    def known(self, path: str) -> str:
        if path == "/" or path in self._exact or path.startswith(self._mounts):
            return path
        bare = path.removesuffix("/")
        slashed = bare + "/"
        if slashed in self._exact and bare not in self._exact:
            return slashed
        if any(pattern.match(slashed) for pattern in self._slashed) and bare not in self._exact:
            return slashed
        return bare


class EitherSlash:
    """Goes around the application. `routes` tells the table at the first request, when every family is in."""

    def __init__(self, app: ASGIApp, *, routes: Callable[[], tuple[Iterable[str], Iterable[str]]]) -> None:
        self._app = app
        self._routes = routes
        self._forms: _Forms | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if self._forms is None:
                self._forms = _Forms(*self._routes())
            path = self._forms.known(scope["path"])
            # A slash that was sent as %2F belongs to a value.
            if path is not scope["path"] and not scope.get("raw_path", b"").upper().endswith(b"%2F"):
                # In place, so that whoever stands in front sees what the router says of it.
                scope["path"] = path
        await self._app(scope, receive, send)


def install(app: FastAPI) -> None:
    """Makes both forms of each of the application's paths answer, and redirects stop."""
    app.router.redirect_slashes = False

    def routes() -> tuple[list[str], list[str]]:
        contexts = list(iter_route_contexts(app.router.routes))
        mounts = [context.path or "" for context in contexts if isinstance(context.original_route, Mount)]
        templates = [context.path or "" for context in contexts if not isinstance(context.original_route, Mount)]
        return templates, mounts

    app.add_middleware(EitherSlash, routes=routes)
