"""What the OpenAPI document says of the protocol's bodies. The attributes themselves are told by `/Schemas`."""

from typing import Any, Final

from starlette.responses import Response

from gatehouse.platform.access.scim.reading import MEDIA_TYPE
from gatehouse.platform.access.scim.urns import GROUP as GROUP_URN
from gatehouse.platform.access.scim.urns import USER as USER_URN


class Nothing(Response):
    """For answers without a body."""

    media_type = None


_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object", "additionalProperties": True}
_ENTRY: Final = {
    "type": "object",
    "properties": {"value": _TEXT, "type": _TEXT, "display": _TEXT, "primary": {"type": "boolean"}},
}
_REFERENCE: Final = {"type": "object", "properties": {"value": _TEXT, "$ref": _TEXT, "display": _TEXT}}
_RESOURCE: Final = {
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
    return {"type": "object", "required": ["schemas", "id"], "properties": {**_RESOURCE, **properties}}


_USER: Final = _resource(
    userName=_TEXT,
    displayName=_TEXT,
    name={"type": "object", "properties": dict.fromkeys(("formatted", "familyName", "givenName"), _TEXT)},
    emails={"type": "array", "items": _ENTRY},
    active={"type": "boolean"},
    groups={"type": "array", "items": _REFERENCE},
)
_GROUP: Final = _resource(displayName=_TEXT, members={"type": "array", "items": _REFERENCE})


def _answer(schema: dict[str, Any], status: int = 200) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": "As it is now.", "content": {MEDIA_TYPE: {"schema": schema}}}}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    whole = {"type": "integer"}
    return {
        "type": "object",
        "required": ["schemas", "totalResults", "startIndex", "itemsPerPage", "Resources"],
        "properties": {
            "schemas": {"type": "array", "items": _TEXT},
            **dict.fromkeys(("totalResults", "startIndex", "itemsPerPage"), whole),
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


ONE: Final = _answer(_OBJECT)
MANY: Final = _answer(_list(_OBJECT))
USER: Final = _answer(_USER)
USERS: Final = _answer(_list(_USER))
USER_MADE: Final = _answer(_USER, 201)
GROUP: Final = _answer(_GROUP)
GROUP_PATCHED: Final = {**GROUP, 204: {"description": "It has more than 1,000 members."}}
GROUPS: Final = _answer(_list(_GROUP))
GROUP_MADE: Final = _answer(_GROUP, 201)

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
