"""The operations on responses that providers keep, in the OpenAPI document."""

from collections.abc import Callable
from typing import Any, Final

_ID: Final = "resp_Zm9vYmFyYmF6cXV1eFsib3BlbmFpIiwiZ3B0LTUiLCJyZXNwXzEiXQ"
_RESPONSE_ID: Final = {
    "name": "response_id",
    "in": "path",
    "required": True,
    "description": "The id of a response, as the gateway returned it to the same user.",
    "schema": {"type": "string", "minLength": 1},
    "example": _ID,
}
_ITEMS: Final = {
    "object": "list",
    "data": [
        {"id": "msg_1", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    ],
    "first_id": "msg_1",
    "last_id": "msg_1",
    "has_more": False,
}  # fmt: skip


def kept_response_paths(read: Callable[..., dict[str, Any]], response: dict[str, Any]) -> dict[str, Any]:
    """Return the path items. `read` describes an operation without a body, `response` is an example of a response."""
    return {
        "/v1/responses/{response_id}": {
            "parameters": [_RESPONSE_ID],
            "get": read(
                "read_response",
                "Read a stored response",
                "A response that its provider stores (`store`). DLP inspects it like an answer.",
                "Response",
                {**response, "id": _ID},
            ),
            "delete": read(
                "delete_response",
                "Delete a stored response",
                "Delete a response at the provider that stores it.",
                "ResponseDeleted",
                {"id": _ID, "object": "response", "deleted": True},
            ),
        },
        "/v1/responses/{response_id}/input_items": {
            "parameters": [_RESPONSE_ID],
            "get": {
                **read(
                    "list_response_input_items",
                    "List the input of a stored response",
                    "The items of the input, page by page, as the provider received them.",
                    "ResponseItems",
                    _ITEMS,
                ),
                "parameters": [
                    _query("after", "The id of an item: the page begins after it."),
                    {
                        **_query("limit", "The maximum number of items in the page. The provider checks it."),
                        "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
                    },
                    _query("order", "`asc` or `desc`."),
                ],
            },
        },
    }


def _query(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": {"type": "string"}}
