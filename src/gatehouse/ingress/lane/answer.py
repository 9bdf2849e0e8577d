"""The head of an answer as bytes."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

_name: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch

CLOSE: Final = "connection: close\r\n"
CHUNKS: Final = "transfer-encoding: chunked\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class BadHeader(Exception):
    """A header that would be two: whoever made it could write a second answer."""


def head(status: int, defaults: bytes, headers: Mapping[str, str], more: str) -> bytes:
    """With the empty line. `defaults` and `more` are whole lines. Raises `BadHeader`."""
    names = tuple(headers)
    fields = _template(names) % tuple(headers.values())
    if fields.count("\n") != len(names) or fields.count("\r") != len(names) or "\0" in fields:
        raise BadHeader
    # A catalog may name its models in any script: what a header cannot hold is told by the body's `model`.
    return b"%b%b%b\r\n" % (STATUS_LINE[status], defaults, (fields + more).encode("latin-1", "replace"))


def refusal(status: int, text: str) -> bytes:
    """What is told to one who has sent no request; the connection ends with it."""
    told = text.encode()
    lines = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(told)}\r\n{CLOSE}\r\n"
    return b"%b%b%b" % (STATUS_LINE[status], lines.encode(), told)


def closes(headers: Mapping[str, str]) -> bool:
    return headers.get("Connection", "").lower() == "close"


@lru_cache(maxsize=256)
def _template(names: tuple[str, ...]) -> str:
    for name in names:
        if _name(name) is None:
            raise BadHeader
    return "".join("{}: %s\r\n".format(name.lower().replace("%", "%%")) for name in names)
