"""Serves `/x` and `/x/` as the same path. It does not redirect, because many clients lose the body of a redirected
POST.

Some routes end in a slash and some do not. The middleware looks up the route's path in the route table and replaces the
request's path by it.
"""

from collections.abc import Callable, Iterable
from re import Pattern

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send


class _RouteTable:
    """The templates of all routes, with and without a final slash. Paths below mounts are not changed."""

    def __init__(self, templates: Iterable[str], mounts: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._slashed: list[Pattern[str]] = []
        self._mounts = tuple(mount.rstrip("/") + "/" for mount in mounts if mount.rstrip("/"))
        for template in set(templates):
            if "{" not in template:
                self._exact.add(template)
            elif template.endswith("/"):
                self._slashed.append(compile_path(template)[0])

    def routed(self, path: str) -> str:
        """Returns the path with or without a final slash, as its route is registered."""
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
    """Middleware that adds or removes the final slash of a path. `routes` returns the templates of routes and the paths
    of mounts. The first request calls it, when all routes are registered."""

    def __init__(self, app: ASGIApp, *, routes: Callable[[], tuple[Iterable[str], Iterable[str]]]) -> None:
        self._app = app
        self._routes = routes
        self._table: _RouteTable | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if self._table is None:
                self._table = _RouteTable(*self._routes())
            path = self._table.routed(scope["path"])
            # A final %2F is part of a value and not a separator.
            if path is not scope["path"] and not scope.get("raw_path", b"").upper().endswith(b"%2F"):
                # Change the scope in place, so that outer middleware sees the routed path.
                scope["path"] = path
        await self._app(scope, receive, send)


def install(app: FastAPI) -> None:
    """Makes the application serve both forms of each path, without redirects."""
    app.router.redirect_slashes = False

    def routes() -> tuple[list[str], list[str]]:
        contexts = list(iter_route_contexts(app.router.routes))
        mounts = [context.path or "" for context in contexts if isinstance(context.original_route, Mount)]
        templates = [context.path or "" for context in contexts if not isinstance(context.original_route, Mount)]
        return templates, mounts

    app.add_middleware(EitherSlash, routes=routes)
