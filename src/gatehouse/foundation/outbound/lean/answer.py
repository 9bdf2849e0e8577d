"""Reads the headers of a response and the framing of its body (RFC 9112, 6) from a head that the parser has
validated."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from gatehouse.foundation.outbound import BrokenOff

#: maximum size of a head, of a trailer, and of any other data that is not body
MAX_HEAD_BYTES: Final = 64 * 1024

_timeout: Final = re.compile(rb"\r\nkeep-alive:[^\r]*timeout=([0-9]{1,9})").search
_END: Final = b"\r\n\r\n"


class Headers(Mapping[str, str]):
    """The headers of a response, with case-insensitive names. A repeated header has the value of its first line. The
    head is parsed when a header is first read, because the headers of most responses are never read."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    @cached_property
    def _values(self) -> dict[str, str]:
        values: dict[str, str] = {}
        for line in self._head.decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            values.setdefault(name.lower(), value.strip(" \t"))
        return values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def final_head(received: bytes, informational: int) -> bytes:
    """Returns the head that follows `informational` informational heads (status 1xx), without the empty line at its
    end. Raises `BrokenOff` if the head is too long, or if its protocol is not HTTP/1: the parser accepts others."""
    start = end = next_start = 0
    for _ in range(informational + 1):
        start = next_start
        # The parser accepts empty lines before a response.
        while received[start] in b"\r\n":
            start += 1
        end = received.index(_END, start)
        next_start = end + 4
    if next_start > MAX_HEAD_BYTES or not received.startswith(b"HTTP/1.", start):
        raise BrokenOff
    return received[start:end]


def framing(head: bytes) -> tuple[bool, str, float]:
    """Returns three values: whether the body ends when the connection is closed, the content encoding in lower case
    (empty if there is none), and for how many seconds the connection may be idle.

    Raises `BrokenOff` for any transfer coding other than a single `chunked`.
    """
    lower = head.lower()
    chunked = b"\r\ntransfer-encoding:" in lower
    if chunked and _values(lower, b"transfer-encoding") != [b"chunked"]:
        raise BrokenOff
    until_close = not chunked and b"\r\ncontent-length:" not in lower
    encoding, keepalive_seconds = "", math.inf
    if b"\r\ncontent-encoding:" in lower:
        encoding = b", ".join(_values(lower, b"content-encoding")).decode("latin-1")
    if b"\r\nkeep-alive:" in lower and (timeout := _timeout(lower)):
        # Subtract one second, so that no request is sent while the server closes the connection.
        keepalive_seconds = int(timeout[1]) - 1.0
    return until_close, encoding, keepalive_seconds


def _values(head: bytes, name: bytes) -> list[bytes]:
    fields = (line.partition(b":") for line in head.split(b"\r\n"))
    return [value.strip(b" \t") for field_name, _, value in fields if field_name == name]
