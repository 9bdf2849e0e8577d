"""Parses the head of a request. The parser `httptools` validates the head. Then the head is split into fields (RFC
9112, 3 to 6).

The parser checks the characters of fields, and refuses conflicting lengths. This module also refuses heads that the
parser accepts but another server could parse differently: a request line with more than two spaces, another protocol,
or a transfer coding other than `chunked`.
"""

import re
from functools import lru_cache
from typing import Final

import httptools
import msgspec

from gatehouse.ingress.http1.framing import (
    Chunked,
    Framing,
    Malformed,
    Sized,
)
from gatehouse.ingress.receive import LISTS, READ

_END: Final = b"\r\n\r\n"

_request_line: Final = re.compile(r"([A-Z][A-Z-]*) ([!-~\x80-\xff]+) HTTP/1\.([01])").fullmatch
#: The `Upgrade` field, which is removed before the request is passed to uvicorn. This declines the upgrade. Otherwise
#: uvicorn's parser would treat the body as data of the new protocol.
_upgrade_field: Final = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)

#: Headers that only this HTTP/1.1 server (`ingress.http1`) reads. The gateway does not read them.
_HEADERS_OF_SERVER: Final = ("transfer-encoding", "connection", "x-forwarded-for", "origin", "upgrade")
#: Headers with list values. Several lines of one header are joined (RFC 9110, 5.3).
_LISTS: Final = frozenset({*_HEADERS_OF_SERVER, *LISTS})


class ParsedHead(msgspec.Struct, gc=False):
    """The head of a request. The names of headers are in lower case."""

    #: the head as received, with its final empty line
    raw: bytes
    method: str
    target: str
    #: the target without its query and trailing slash; percent-encoded characters are not decoded
    path: str
    is_http10: bool
    #: the headers whose names are in `receive.READ`
    headers: dict[str, str]
    #: the headers whose names are in `_HEADERS_OF_SERVER`
    connection_headers: dict[str, str]
    #: length of the body in bytes; 0 without a body, None for a chunked body
    length: int | None

    @property
    def keeps_alive(self) -> bool:
        """Return whether the connection may be used for another request. Connections with HTTP/1.0 are closed."""
        if self.is_http10:
            return False
        options = self.connection_headers.get("connection", "").lower()
        return "close" not in options or "close" not in [option.strip(" \t") for option in options.split(",")]

    @property
    def expects_continue(self) -> bool:
        """Return whether the client waits for 100 Continue before it sends the body."""
        return "expect" in self.headers and self.headers["expect"].lower() == "100-continue" and not self.is_http10

    def framing(self) -> Framing | None:
        """Return the framing of the body, or None if there is no body."""
        if self.length is None:
            return Chunked()
        return Sized(self.length) if self.length else None

    def without_upgrade(self) -> bytes:
        return _upgrade_field.sub(b"", self.raw) if "upgrade" in self.connection_headers else self.raw


class HeadReader:
    """Reads the heads of consecutive requests. `partial` is the parser of an incomplete head."""

    __slots__ = ("_complete", "_fed", "partial")

    def __init__(self) -> None:
        self.partial: httptools.HttpRequestParser | None = None
        self._fed = 0
        self._complete = False

    def on_headers_complete(self) -> None:
        self._complete = True

    def take(self, arrived: bytes) -> tuple[ParsedHead | None, bytes]:
        """Return the head at the beginning of `arrived`, and the bytes after it. If the head is incomplete, return None
        and the bytes to pass again when more bytes have arrived. Raises `Malformed` as soon as an error is detected."""
        parser, fed = self.partial, self._fed
        if parser is None:
            # Empty lines may precede a request (RFC 9112, 2.2).
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
        return _parse(raw), arrived[end + 4 :]


def _feed(parser: httptools.HttpRequestParser, data: bytes) -> None:
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        return
    except httptools.HttpParserError:
        raise Malformed from None


def _parse(raw: bytes) -> ParsedHead:
    first, *fields = raw[:-4].decode("latin-1").split("\r\n")
    line = _request_line(first)
    # CONNECT is refused, because the data after it is not HTTP.
    if line is None or line[1] == "CONNECT":
        raise Malformed
    headers: dict[str, str] = {}
    connection_headers: dict[str, str] = {}
    for field in fields:
        raw_name, _, value = field.partition(":")
        if (name := _name_of_read_header(raw_name)) is not None:
            fields_read = headers if name in READ else connection_headers
            value = value.strip(" \t")
            fields_read[name] = f"{fields_read[name]},{value}" if name in fields_read and name in _LISTS else value
    method, target, minor = line.groups()
    length = _length(headers, connection_headers, is_http10=minor == "0")
    path = target.partition("?")[0].removesuffix("/")
    return ParsedHead(raw, method, target, path, minor == "0", headers, connection_headers, length)


@lru_cache(maxsize=1024)
def _name_of_read_header(raw_name: str) -> str | None:
    """Return the name in lower case if the header is read, otherwise None. Results are cached, because clients use only
    one or two spellings of a name."""
    name = raw_name.lower()
    return name if name in READ or name in _HEADERS_OF_SERVER else None


def _length(headers: dict[str, str], connection_headers: dict[str, str], *, is_http10: bool) -> int | None:
    coding, length = connection_headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or is_http10 or length is not None:
            raise Malformed
        return None
    if length is None:
        return 0
    if not length.isdecimal():
        raise Malformed
    return int(length)
