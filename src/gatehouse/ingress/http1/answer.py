"""Encodes the head of a response."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

_name: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch

CLOSE: Final = "connection: close\r\n"
CHUNKED: Final = "transfer-encoding: chunked\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadHeader(Exception):
    """A header contains a line break or a NUL character, which could add a header or a second response."""


def head(status: int, defaults: bytes, headers: Mapping[str, str], more: str) -> bytes:
    """Return the head of a response, including the final empty line. `defaults` and `more` consist of complete header
    lines. Raises `BadHeader`."""
    names = tuple(headers)
    fields = _template(names) % tuple(headers.values())
    if fields.count("\n") != len(names) or fields.count("\r") != len(names) or "\0" in fields:
        raise BadHeader
    # Names of models may contain characters outside Latin-1. The `model` field of the body has the complete name.
    return b"%b%b%b\r\n" % (STATUS_LINE[status], defaults, (fields + more).encode("latin-1", "replace"))


def refusal(status: int, text: str) -> bytes:
    """Return a response to input that is not a valid request. It closes the connection."""
    body = text.encode()
    lines = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n{CLOSE}\r\n"
    return b"%b%b%b" % (STATUS_LINE[status], lines.encode(), body)


def closes(headers: Mapping[str, str]) -> bool:
    return headers.get("Connection", "").lower() == "close"


@lru_cache(maxsize=256)
def _template(names: tuple[str, ...]) -> str:
    for name in names:
        if _name(name) is None:
            raise BadHeader
    return "".join("{}: %s\r\n".format(name.lower().replace("%", "%%")) for name in names)
