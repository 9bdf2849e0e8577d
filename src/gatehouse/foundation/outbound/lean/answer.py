"""What the head of an answer says. The parser has judged its form; here is what it means for the body (RFC 9112, 6)."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from gatehouse.foundation.outbound import BrokenOff

#: Bytes of a head, of a trailer, or of anything else that is no body.
MAX_HEAD: Final = 64 * 1024

_timeout: Final = re.compile(rb"\r\nkeep-alive:[^\r]*timeout=([0-9]{1,9})").search
_END: Final = b"\r\n\r\n"


class Headers(Mapping[str, str]):
    """Case-insensitive; of a name that comes twice the first. Taken apart when first asked: most answers' are not."""

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
    """The head behind so many informational ones, without its empty line. Raises `BrokenOff` for one that is too long,
    or of a protocol that the parser takes too."""
    start = end = behind = 0
    for _ in range(informational + 1):
        start = behind
        # The parser lets empty lines pass in front of an answer.
        while received[start] in b"\r\n":
            start += 1
        end = received.index(_END, start)
        behind = end + 4
    if behind > MAX_HEAD or not received.startswith(b"HTTP/1.", start):
        raise BrokenOff
    return received[start:end]


def framing(head: bytes) -> tuple[bool, str, float]:
    """Whether the body ends with the connection, how it is packed (lower case; nothing where it is not), and for how
    many seconds the connection may rest. Raises `BrokenOff` for a transfer coding other than `chunked`, once: nobody
    here asked for one."""
    lower = head.lower()
    chunked = b"\r\ntransfer-encoding:" in lower
    if chunked and _values(lower, b"transfer-encoding") != [b"chunked"]:
        raise BrokenOff
    until_close = not chunked and b"\r\ncontent-length:" not in lower
    encoding, rests = "", math.inf
    if b"\r\ncontent-encoding:" in lower:
        encoding = b", ".join(_values(lower, b"content-encoding")).decode("latin-1")
    if b"\r\nkeep-alive:" in lower and (told := _timeout(lower)):
        # A second earlier: a request and the far end's patience may cross on their way.
        rests = int(told[1]) - 1.0
    return until_close, encoding, rests


def _values(head: bytes, name: bytes) -> list[bytes]:
    fields = (line.partition(b":") for line in head.split(b"\r\n"))
    return [value.strip(b" \t") for found, _, value in fields if found == name]
