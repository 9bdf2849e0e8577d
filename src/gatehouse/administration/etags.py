"""Optimistic concurrency control with entity tags, which prevents lost updates (RFC 9110, 13.1.1).

A response that shows a resource has the resource's version as `ETag`. A change with that value in `If-Match` is refused
with 412 if the resource has changed since. Without `If-Match`, the last write wins. The version of a row is
`updated_at`, which observations (a sign-in, a health check) do not change. The version of a setting that is not a row
is a digest of its value.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec
from fastapi import Depends, Request, Response
from fastapi.dependencies.models import Dependant
from starlette.datastructures import MutableHeaders

from gatehouse.foundation.errors import PreconditionFailed

READ_METHODS: Final = frozenset({"GET", "HEAD"})

#: The header of operations that check the version of their resource.
_IF_MATCH: Final[dict[str, Any]] = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The version that the resource must have, as in `ETag`. Otherwise the response is 412.",
}
#: The description of the response 412.
PRECONDITION_FAILED: Final = "The precondition in `If-Match` or `If-None-Match` does not hold for the resource."


def value_tag(value: object) -> str:
    """Return the version of a value as an entity tag. Equal values have the same version."""
    return f'"{sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]}"'


class Versioned(Protocol):
    """A row, which knows its version."""

    def entity_tag(self) -> str | None: ...


class Versions:
    """The version of the resource that a request concerns. Each request has its own instance."""

    def __init__(self, request: Request, response: Response) -> None:
        self._request = request
        self._response = response
        self._version: Callable[[], str | None] | None = None
        self._shown_by_response = False

    def about(self, row: Versioned, parameter: str | None = None, *, part: str = "") -> None:
        """Set the row that the request concerns. The row must be locked if the request changes it.

        The response has the `ETag` of the row if it shows the row or a part of it. This is the case if there is no
        `parameter`, if the path ends with the `parameter` that identifies the row, or if the path ends with the
        parameter and `part`."""
        path: str = self._request.scope["route"].path
        end = f"{{{parameter}}}"
        shown = parameter is None or path.endswith((end, end + part))
        self.about_version(row.entity_tag, shown=shown)

    def about_version(self, version: Callable[[], str | None], *, shown: bool = True) -> None:
        """Set the function that returns the present version of the resource that the request concerns. `shown` is
        whether the response shows the resource."""
        self._version = version
        self._shown_by_response = shown
        if shown and self._request.method in READ_METHODS:
            self._set_etag(self._response.headers)

    def require(self) -> None:
        """Check the version of the resource against `If-Match`. Raises `PreconditionFailed`."""
        header_values = self._request.headers.getlist("if-match")
        if self._version is None or not header_values:
            return
        # A compressing proxy turns strong tags into weak ones. They still name the same version.
        accepted = {value.strip().removeprefix("W/") for value in ",".join(header_values).split(",")}
        if self._version() not in accepted and "*" not in accepted:
            raise PreconditionFailed

    def changed(self) -> None:
        """Set the new `ETag` after the commit. The response of the route already exists, so the header is put into the
        state, from which the shell adds it."""
        if self._shown_by_response:
            self._set_etag(self._request.scope["state"]["response_headers"])

    def _set_etag(self, headers: MutableHeaders | dict[str, str]) -> None:
        if self._version is not None and (version := self._version()) is not None:
            headers["ETag"] = version


async def _versions(request: Request, response: Response) -> Versions:
    return Versions(request, response)


#: The dependency of routes, and of dependencies, that load resources.
TheVersions = Annotated[Versions, Depends(_versions)]

Dependency = TypeVar("Dependency", bound=Callable[..., Any])

_LOADERS_WITHOUT_VERSION: Final[set[Callable[..., Any]]] = set()
_CHECKING: Final[set[Callable[..., Any]]] = set()


def without_version(loader: Dependency) -> Dependency:
    """Mark a dependency whose rows have no version. The documentation of its operations does not offer `If-Match`."""
    _LOADERS_WITHOUT_VERSION.add(loader)
    return loader


def checks_if_match(dependency: Dependency) -> Dependency:
    """Mark a dependency of changing routes that calls `Versions.require`."""
    _CHECKING.add(dependency)
    return dependency


def if_match_parameters(dependant: Dependant) -> list[dict[str, Any]]:
    """Return the parameters for the documentation of a route: `If-Match`, if the route refuses a change of another
    version of its resource."""
    calls = _calls_with_versions(dependant)
    loaders = [call for call in calls if call not in _CHECKING]
    checked = len(loaders) < len(calls) and bool(loaders) and _LOADERS_WITHOUT_VERSION.isdisjoint(loaders)
    return [_IF_MATCH] if checked else []


def _calls_with_versions(dependant: Dependant) -> list[Callable[..., Any]]:
    """Return the route and its dependencies, at any depth, as far as they depend on `Versions`."""
    nested = [call for dependency in dependant.dependencies for call in _calls_with_versions(dependency)]
    if dependant.call is not None and any(dependency.call is _versions for dependency in dependant.dependencies):
        return [dependant.call, *nested]
    return nested
