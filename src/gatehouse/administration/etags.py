"""Optimistic concurrency control with entity tags, which prevents lost updates (RFC 9110, 13.1.1).

A response that shows a row has the row's version as `ETag`. A change with that value in `If-Match` is refused with 412
if the row has changed since. Without `If-Match`, the last write wins. The version is `updated_at`, which observations
(a sign-in, a health check) do not change.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from sqlalchemy import inspect
from starlette.datastructures import MutableHeaders

from gatehouse.foundation.errors import PreconditionFailed
from gatehouse.foundation.storage.rows import Row

READ_METHODS: Final = frozenset({"GET", "HEAD"})

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def tag(row: Row) -> str | None:
    """Return the version of the row as an entity tag, or None for a row without `updated_at`."""
    updated_at: datetime | None = getattr(row, "updated_at", None)
    if updated_at is None:
        return None
    return f'"{(updated_at - _EPOCH) // timedelta(microseconds=1):x}"'


class Versions:
    """The version of the row that a request concerns. Each request has its own instance."""

    def __init__(self, request: Request, response: Response) -> None:
        self._request = request
        self._response = response
        self._row: Row | None = None
        self._response_shows_row = False

    def about(self, row: Row, parameter: str | None = None, *, part: str = "") -> None:
        """Set the row that the request concerns. The row must be locked if the request changes it.

        The response has the `ETag` of the row if it shows the row or a part of it. This is the case if there is no
        `parameter`, if the path ends with the `parameter` that identifies the row, or if the path ends with the
        parameter and `part`."""
        path: str = self._request.scope["route"].path
        self._row = row
        self._response_shows_row = parameter is None or path.endswith(f"{{{parameter}}}{part}")
        if self._response_shows_row and self._request.method in READ_METHODS:
            self._set_etag(self._response.headers)

    def require(self) -> None:
        """Check the version of the row against `If-Match`. Raises `PreconditionFailed`."""
        header_values = self._request.headers.getlist("if-match")
        if self._row is None or not header_values:
            return
        # A compressing proxy turns strong tags into weak ones. They still name the same version.
        accepted = {value.strip().removeprefix("W/") for value in ",".join(header_values).split(",")}
        if tag(self._row) not in accepted and "*" not in accepted:
            raise PreconditionFailed

    def changed(self) -> None:
        """Set the new `ETag` after the commit. The response of the route already exists, so the header is put into the
        state, from which admission adds it."""
        if self._response_shows_row:
            self._set_etag(self._request.scope["state"]["response_headers"])

    def _set_etag(self, headers: MutableHeaders | dict[str, str]) -> None:
        if self._row is None:
            return
        # A deleted row has no version. A row that was never stored, such as a default, has one.
        state = inspect(self._row)
        if state.persistent or state.transient:
            version = tag(self._row)
            if version is not None:
                headers["ETag"] = version


async def _versions(request: Request, response: Response) -> Versions:
    return Versions(request, response)


#: The dependency of routes, and of dependencies, that load rows.
TheVersions = Annotated[Versions, Depends(_versions)]

Loader = TypeVar("Loader", bound=Callable[..., Any])

_LOADERS_WITHOUT_VERSION: Final[set[Callable[..., Any]]] = set()


def without_version(loader: Loader) -> Loader:
    """Mark a dependency whose rows have no version. The documentation of its operations does not offer `If-Match`."""
    _LOADERS_WITHOUT_VERSION.add(loader)
    return loader


def loaders(dependant: Dependant) -> list[Callable[..., Any]]:
    """Return the dependencies of a route that declare the version of a row."""
    nested = [loader for dependency in dependant.dependencies for loader in loaders(dependency)]
    if dependant.call is not None and any(dependency.call is _versions for dependency in dependant.dependencies):
        return [dependant.call, *nested]
    return nested


def has_version(loader: Callable[..., Any]) -> bool:
    return loader not in _LOADERS_WITHOUT_VERSION
