"""The head of a request: judged by the parser, then taken apart (RFC 9112, 3 to 6).

The parser knows what a field may hold and which lengths contradict each other. What it lets pass, and another reader
could take otherwise, is refused here: a request line with more than two spaces, another protocol, a coding other than
`chunked`.
"""

import re
from functools import lru_cache
from typing import Final

import httptools
import msgspec

from gatehouse.ingress.lane.framing import Chunked, Framing, Malformed, Sized
from gatehouse.ingress.receive import LISTS, READ

_END: Final = b"\r\n\r\n"

_request_line: Final = re.compile(r"([A-Z][A-Z-]*) ([!-~\x80-\xff]+) HTTP/1\.([01])").fullmatch
#: Of an offer of another protocol nothing remains: it is not accepted, and a parser that hears of it would take the
#: body for that protocol's.
_offer: Final = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)

#: What the lane itself has to know.
_WIRE: Final = ("transfer-encoding", "connection", "x-forwarded-for", "origin", "upgrade")
#: Their lines are parts of one list (RFC 9110, 5.3).
_LISTS: Final = frozenset({*_WIRE, *LISTS})


class Head(msgspec.Struct, gc=False):
    """`headers` are those that `receive.READ` names, in lower case, `wire` those that matter to the lane alone."""

    #: the bytes, with the empty line
    raw: bytes
    method: str
    target: str
    #: as it was sent, without the query and without a slash at its end
    path: str
    #: whether it is HTTP/1.0
    old: bool
    headers: dict[str, str]
    wire: dict[str, str]
    #: of the body, in bytes; 0 where none follows, None where it comes in chunks
    length: int | None

    @property
    def keeps(self) -> bool:
        """Whether the client wants the connection for another request. One of HTTP/1.0 gets none."""
        if self.old:
            return False
        told = self.wire.get("connection", "").lower()
        return "close" not in told or "close" not in [word.strip(" \t") for word in told.split(",")]

    @property
    def expects(self) -> bool:
        """Whether the body comes only after 100 Continue."""
        return "expect" in self.headers and self.headers["expect"].lower() == "100-continue" and not self.old

    def framing(self) -> Framing | None:
        """None: no body follows."""
        if self.length is None:
            return Chunked()
        return Sized(self.length) if self.length else None

    def without_offers(self) -> bytes:
        return _offer.sub(b"", self.raw) if "upgrade" in self.wire else self.raw


class Heads:
    """Heads as they arrive, one after the other. `partial` is there while one has begun and not ended."""

    __slots__ = ("_complete", "_fed", "partial")

    def __init__(self) -> None:
        self.partial: httptools.HttpRequestParser | None = None
        self._fed = 0
        self._complete = False

    def on_headers_complete(self) -> None:
        self._complete = True

    def take(self, arrived: bytes) -> tuple[Head | None, bytes]:
        """The head at the beginning of what has arrived, and the rest; without one, what to come back with when more
        has arrived. Raises `Malformed` as soon as it is seen."""
        parser, fed = self.partial, self._fed
        if parser is None:
            # Empty lines may stand in front of a request (RFC 9112, 2.2).
            while arrived.startswith(b"\r\n"):
                arrived = arrived[2:]
            if arrived in {b"", b"\r"}:
                return None, arrived
            parser, fed = httptools.HttpRequestParser(self), 0
        end = arrived.find(_END, max(0, fed - 3))
        if end < 0:
            _feed(parser, arrived[fed:])
            if self._complete:
                raise Malformed
            self.partial, self._fed = parser, len(arrived)
            return None, arrived
        raw = arrived[: end + 4]
        _feed(parser, raw[fed:])
        if not self._complete:
            raise Malformed
        self.partial, self._complete = None, False
        return _apart(raw), arrived[end + 4 :]


def _feed(parser: httptools.HttpRequestParser, data: bytes) -> None:
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        return
    except httptools.HttpParserError:
        raise Malformed from None


def _apart(raw: bytes) -> Head:
    first, *fields = raw[:-4].decode("latin-1").split("\r\n")
    line = _request_line(first)
    # What follows CONNECT is no HTTP.
    if line is None or line[1] == "CONNECT":
        raise Malformed
    headers: dict[str, str] = {}
    wire: dict[str, str] = {}
    for field in fields:
        spelt, _, value = field.partition(":")
        if (name := _wanted(spelt)) is not None:
            kept = headers if name in READ else wire
            value = value.strip(" \t")
            kept[name] = f"{kept[name]},{value}" if name in kept and name in _LISTS else value
    method, target, minor = line.groups()
    length = _length(headers, wire, old=minor == "0")
    path = target.partition("?")[0].removesuffix("/")
    return Head(raw, method, target, path, minor == "0", headers, wire, length)


@lru_cache(maxsize=1024)
def _wanted(spelt: str) -> str | None:
    """The name in lower case, where it is one that is read. Clients spell each in one or two ways."""
    name = spelt.lower()
    return name if name in READ or name in _WIRE else None


def _length(headers: dict[str, str], wire: dict[str, str], *, old: bool) -> int | None:
    coding, length = wire.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or old or length is not None:
            raise Malformed
        return None
    if length is None:
        return 0
    if not length.isdecimal():
        raise Malformed
    return int(length)
