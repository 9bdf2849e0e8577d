"""The headers that an answer gets on its way out, whoever made it."""

from collections.abc import Mapping
from typing import Final

from starlette.types import Message

#: Browsers take the media type at its word: JSON that holds markup is not run as a page.
NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}
_NO_CONTENT: Final = 204


def complete(start: Message, more: Mapping[str, str]) -> None:
    """Adds to `http.response.start` the headers that the answer lacks. An answer without content has no type."""
    headers = [
        (name, value)
        for name, value in start.get("headers", ())
        if start["status"] != _NO_CONTENT or name.lower() != b"content-type"
    ]
    present = {name.lower() for name, _ in headers}
    pairs = [(name.lower().encode(), value.encode()) for name, value in {**NOSNIFF, **more}.items()]
    start["headers"] = [*headers, *(pair for pair in pairs if pair[0] not in present)]
