"""OpenAPI descriptions of the protocol's bodies. `/Schemas` describes the attributes themselves."""

from typing import Any, Final

from starlette.responses import Response

from gatehouse.platform.access.scim.protocol.messages import MEDIA_TYPE
from gatehouse.platform.access.scim.protocol.urns import GROUP as GROUP_URN
from gatehouse.platform.access.scim.protocol.urns import USER as USER_URN


class NoContent(Response):
    """A response without a body."""

    media_type = None


_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object", "additionalProperties": True}
_MULTI_VALUED_ENTRY: Final = {
    "type": "object",
    "properties": {"value": _TEXT, "type": _TEXT, "display": _TEXT, "primary": {"type": "boolean"}},
}
_REFERENCE: Final = {"type": "object", "properties": {"value": _TEXT, "$ref": _TEXT, "display": _TEXT}}
_COMMON_ATTRIBUTES: Final = {
    "schemas": {"type": "array", "items": _TEXT},
    "id": _TEXT,
    "externalId": _TEXT,
    "meta": {
        "type": "object",
        "properties": {
            "resourceType": _TEXT,
            "created": {"type": "string", "format": "date-time"},
            "lastModified": {"type": "string", "format": "date-time"},
            "location": _TEXT,
        },
    },
}


def _resource(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": ["schemas", "id"], "properties": {**_COMMON_ATTRIBUTES, **properties}}


_USER: Final = _resource(
    userName=_TEXT,
    displayName=_TEXT,
    name={"type": "object", "properties": dict.fromkeys(("formatted", "familyName", "givenName"), _TEXT)},
    emails={"type": "array", "items": _MULTI_VALUED_ENTRY},
    active={"type": "boolean"},
    groups={"type": "array", "items": _REFERENCE},
)
_GROUP: Final = _resource(displayName=_TEXT, members={"type": "array", "items": _REFERENCE})


def _response(schema: dict[str, Any], status: int = 200) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": "The current state of the resource.", "content": {MEDIA_TYPE: {"schema": schema}}}}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    integer = {"type": "integer"}
    return {
        "type": "object",
        "required": ["schemas", "totalResults", "startIndex", "itemsPerPage", "Resources"],
        "properties": {
            "schemas": {"type": "array", "items": _TEXT},
            **dict.fromkeys(("totalResults", "startIndex", "itemsPerPage"), integer),
            "Resources": {"type": "array", "items": schema},
        },
    }


def _body(example: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    content = {"schema": schema, "example": example}
    return {"requestBody": {"required": True, "content": {MEDIA_TYPE: content, "application/json": content}}}


def _patch(example: dict[str, Any]) -> dict[str, Any]:
    operation = {
        "type": "object",
        "required": ["op"],
        "properties": {"op": {"type": "string", "examples": ["replace"]}, "path": _TEXT, "value": {}},
    }
    schema = {
        "type": "object",
        "required": ["Operations"],
        "properties": {
            "schemas": {"type": "array", "items": _TEXT},
            "Operations": {"type": "array", "items": operation},
        },
    }
    message = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
    return _body({"schemas": [message], "Operations": [example]}, schema)


DOCUMENT: Final = _response(_OBJECT)
DOCUMENT_LIST: Final = _response(_list(_OBJECT))
USER: Final = _response(_USER)
USER_LIST: Final = _response(_list(_USER))
USER_CREATED: Final = _response(_USER, 201)
GROUP: Final = _response(_GROUP)
GROUP_PATCHED: Final = {**GROUP, 204: {"description": "The group has more than 1,000 members."}}
GROUP_LIST: Final = _response(_list(_GROUP))
GROUP_CREATED: Final = _response(_GROUP, 201)

_ID: Final = "0192f3c4-5d6e-7f80-9123-456789abcdef"
USER_BODY: Final = _body(
    {
        "schemas": [USER_URN],
        "userName": "ada@example.com",
        "name": {"givenName": "Ada", "familyName": "Lovelace"},
        "emails": [{"value": "ada@example.com", "primary": True}],
        "active": True,
    },
    _OBJECT,
)
GROUP_BODY: Final = _body(
    {"schemas": [GROUP_URN], "displayName": "Payments", "externalId": "g-4711", "members": [{"value": _ID}]}, _OBJECT
)
USER_PATCH: Final = _patch({"op": "replace", "path": "active", "value": False})
GROUP_PATCH: Final = _patch({"op": "add", "path": "members", "value": [{"value": _ID}]})
