"""The protected resources of this platform to which a token can be limited (RFC 8707): the MCP servers at one path, or
one of them. The audience of such a token is the address of the resource."""

import re
from collections.abc import Iterator
from typing import Any, Final

from gatehouse.engine.mcp.serving import ALL

_is_path: Final = re.compile(rf"{ALL}(/[a-z0-9][a-z0-9-]{{0,62}})?").fullmatch


def of_path(path: str) -> Iterator[str]:
    """Yield the paths of the resources that a request belongs to."""
    if _is_path(path):
        yield path
        if path != ALL:
            yield ALL


def covers(resource: str, path: str) -> bool:
    """Return whether requests to this path belong to the resource."""
    return resource in of_path(path)


def identifier(issuer: str, path: str) -> str:
    """Return the address of a resource."""
    return issuer.rstrip("/") + path


def path_of(issuer: str, audience: Any) -> str | None:
    """Return the path of the resource that an audience names, or None for the whole platform. Raises `ValueError`."""
    if audience == issuer or (type(audience) is list and issuer in audience):
        return None
    base = issuer.rstrip("/")
    if type(audience) is str and audience.startswith(base) and _is_path(path := audience[len(base) :]):
        return path
    raise ValueError("the audience is not a resource of this platform")
