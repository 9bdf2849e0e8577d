"""Headers that are added to every response."""

from collections.abc import Mapping
from typing import Final

from starlette.types import Message

#: stops browsers from guessing the media type and rendering JSON with markup as a page
NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}
_NO_CONTENT: Final = 204


def add_missing_headers(start: Message, more: Mapping[str, str]) -> None:
    """Adds the missing headers to a `http.response.start`. Removes the content type of a response without content."""
    headers = [
        (name, value)
        for name, value in start.get("headers", ())
        if start["status"] != _NO_CONTENT or name.lower() != b"content-type"
    ]
    present = {name.lower() for name, _ in headers}
    pairs = [(name.lower().encode(), value.encode()) for name, value in {**NOSNIFF, **more}.items()]
    start["headers"] = [*headers, *(pair for pair in pairs if pair[0] not in present)]
