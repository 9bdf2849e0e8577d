"""What requests and answers of the protocol have in common."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import Depends, Query, Request
from starlette.responses import Response

from gatehouse.foundation.http.bodies import has_nul
from gatehouse.platform.access.scim.errors import InvalidSyntax, InvalidValue, ResourceTooLarge
from gatehouse.platform.access.scim.projection import Projection
from gatehouse.platform.access.scim.urns import MAX_RESULTS
from gatehouse.platform.ports import TheHost

PREFIX: Final = "/api/scim/v2"
MEDIA_TYPE: Final = "application/scim+json"
#: entries of a page where the directory does not say
_COUNT: Final = 100
_LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"


class Scim(Response):
    """An answer of the protocol."""

    media_type = MEDIA_TYPE

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(msgspec.json.encode(content), status_code, headers)

    @classmethod
    def created(cls, resource: dict[str, Any], location: str) -> "Scim":
        return cls(resource, 201, {"Location": location})

    @classmethod
    def listing(cls, resources: Sequence[dict[str, Any]], *, total: int, start_index: int = 1) -> "Scim":
        return cls(
            {
                "schemas": [_LIST],
                "totalResults": total,
                "startIndex": start_index,
                "itemsPerPage": len(resources),
                "Resources": resources,
            }
        )


def base(request: Request, host: TheHost) -> str:
    """What each `location` and `$ref` begins with."""
    return (host.settings.public_url or str(request.base_url)).rstrip("/") + PREFIX


Base = Annotated[str, Depends(base)]


class View:
    """How a request wants resources shown: `part` of each, with references that begin with `base`."""

    def __init__(
        self,
        base: Base,
        attributes: Annotated[str | None, Query(description="Show these alone, separated by commas.")] = None,
        excluded: Annotated[
            str | None, Query(alias="excludedAttributes", description="Show all but these, separated by commas.")
        ] = None,
    ) -> None:
        self.base = base
        #: whether the request says what to show
        self.asked = bool(attributes or excluded)
        self.part = Projection(attributes, excluded)


Shown = Annotated[View, Depends(View)]


class Window:
    """A page of what fits `filter`. Values out of bounds are taken as the nearest within (RFC 7644, 3.4.2.4)."""

    def __init__(
        self,
        filter: Annotated[
            str | None, Query(description="RFC 7644, 3.4.2.2.", examples=['userName eq "ada@example.com"'])
        ] = None,
        start_index: Annotated[str, Query(alias="startIndex", description="Counts from 1.", examples=["1"])] = "1",
        count: Annotated[str, Query(description=f"{MAX_RESULTS} at most.", examples=["100"])] = str(_COUNT),
    ) -> None:
        self.filter = filter
        self.start_index = min(max(_whole("startIndex", start_index), 1), 2**62)
        self.count = min(max(_whole("count", count), 0), MAX_RESULTS)


Page = Annotated[Window, Depends(Window)]


def _whole(name: str, value: str) -> int:
    try:
        return int(value[:20])
    except ValueError:
        raise InvalidValue(f"{name} must be a whole number") from None


async def body(request: Request, most: int) -> dict[str, Any]:
    """The body, an object, of `most` bytes. Raises `ResourceTooLarge`, `InvalidSyntax`, `InvalidValue`."""
    raw = await request.body()
    if len(raw) > most:
        raise ResourceTooLarge(f"The resource may have {most // 1024} KiB.")
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InvalidSyntax("The body is not valid JSON.") from None
    if not isinstance(decoded, dict):
        raise InvalidSyntax("The body must be an object.")
    if has_nul(decoded):
        raise InvalidValue("Text may not contain NUL characters.")
    return decoded


def operations(patch: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """The operations of a PATCH, their keys in lower case (RFC 7644, 3.5.2). Raises `InvalidSyntax`, `InvalidValue`."""
    fields = {key.lower(): value for key, value in patch.items()}
    found = fields.get("operations")
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise InvalidSyntax("Operations must be a list of objects, one or more")
    if len(found) > most:
        raise InvalidValue(f"A request may have {most} operations")
    return [{key.lower(): value for key, value in each.items()} for each in found]
