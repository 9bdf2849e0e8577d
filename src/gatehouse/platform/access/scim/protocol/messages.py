"""Requests and responses of the protocol: bodies, list windows and attribute selection."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Query, Request
from starlette.responses import Response

from gatehouse.foundation.http.bodies import has_nul
from gatehouse.platform.access.scim.errors import InvalidSyntax, InvalidValue, ResourceTooLarge
from gatehouse.platform.access.scim.protocol.projection import Projection
from gatehouse.platform.access.scim.protocol.urns import MAX_RESULTS
from gatehouse.platform.request.ports import TheHost

PREFIX: Final = "/api/scim/v2"
MEDIA_TYPE: Final = "application/scim+json"
#: default number of entries of a page
_DEFAULT_COUNT: Final = 100
_LIST_RESPONSE_URN: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"


class ScimResponse(Response):
    """A response of the protocol."""

    media_type = MEDIA_TYPE

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(msgspec.json.encode(content), status_code, headers)

    @classmethod
    def created_response(cls, resource: dict[str, Any], location: str) -> "ScimResponse":
        return cls(resource, 201, {"Location": location})

    @classmethod
    def list_response(cls, resources: Sequence[dict[str, Any]], *, total: int, start_index: int = 1) -> "ScimResponse":
        return cls(
            {
                "schemas": [_LIST_RESPONSE_URN],
                "totalResults": total,
                "startIndex": start_index,
                "itemsPerPage": len(resources),
                "Resources": resources,
            }
        )


async def base(request: Request, host: TheHost) -> str:
    """Return the prefix of each `location` and `$ref`."""
    return (host.settings.public_url or str(request.base_url)).rstrip("/") + PREFIX


BaseUrl = Annotated[str, Depends(base)]


class ResourceView:
    """The representation of resources in a response: `projection` selects attributes, `base` prefixes references."""

    def __init__(self, base: str, attributes: str | None, excluded: str | None) -> None:
        self.base = base
        #: whether the request selects attributes
        self.has_projection = bool(attributes or excluded)
        self.projection = Projection(attributes, excluded)


async def _view(
    base: BaseUrl,
    attributes: Annotated[str | None, Query(description="The attributes to return, separated by commas.")] = None,
    excluded: Annotated[
        str | None, Query(alias="excludedAttributes", description="The attributes to leave out, separated by commas.")
    ] = None,
) -> ResourceView:
    return ResourceView(base, attributes, excluded)


RequestView = Annotated[ResourceView, Depends(_view)]


class ListWindow:
    """A page of the resources that match `filter`. Values out of bounds are clamped (RFC 7644, 3.4.2.4)."""

    def __init__(self, filter: str | None, start_index: str, count: str) -> None:
        self.filter = filter
        self.start_index = min(max(_parse_integer("startIndex", start_index), 1), 2**62)
        self.count = min(max(_parse_integer("count", count), 0), MAX_RESULTS)


async def _window(
    filter: Annotated[
        str | None, Query(description="The filter (RFC 7644, 3.4.2.2).", examples=['userName eq "ada@example.com"'])
    ] = None,
    start_index: Annotated[
        str, Query(alias="startIndex", description="Number of the first resource, counted from 1.", examples=["1"])
    ] = "1",
    count: Annotated[
        str, Query(description=f"Maximum number of resources, up to {MAX_RESULTS}.", examples=["100"])
    ] = str(_DEFAULT_COUNT),
) -> ListWindow:
    return ListWindow(filter, start_index, count)


RequestWindow = Annotated[ListWindow, Depends(_window)]


def _parse_integer(name: str, value: str) -> int:
    try:
        return int(value[:20])
    except ValueError:
        raise InvalidValue(f"{name} must be a whole number") from None


async def read_json(request: Request, max_bytes: int) -> dict[str, Any]:
    """Return the body, a JSON object of at most `max_bytes` bytes. Raises `ResourceTooLarge`, `InvalidSyntax`,
    `InvalidValue`."""
    raw = await request.body()
    if len(raw) > max_bytes:
        raise ResourceTooLarge(f"The resource may have at most {max_bytes // 1024} KiB.")
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InvalidSyntax("The body is not valid JSON.") from None
    if not isinstance(decoded, dict):
        raise InvalidSyntax("The body must be an object.")
    if has_nul(decoded):
        raise InvalidValue("Text may not contain NUL characters.")
    return decoded


def operations(patch: dict[str, Any], maximum: int) -> list[dict[str, Any]]:
    """Return the operations of a PATCH, with lower-case keys (RFC 7644, 3.5.2). Raises `InvalidSyntax`,
    `InvalidValue`."""
    fields = {key.lower(): value for key, value in patch.items()}
    raw_operations = fields.get("operations")
    if (
        not isinstance(raw_operations, list)
        or not raw_operations
        or not all(isinstance(operation, dict) for operation in raw_operations)
    ):
        raise InvalidSyntax("Operations must be a list of objects, one or more")
    if len(raw_operations) > maximum:
        raise InvalidValue(f"A request may have at most {maximum} operations")
    return [{key.lower(): value for key, value in operation.items()} for operation in raw_operations]
