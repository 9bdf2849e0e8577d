"""Encodes the head of a request."""

from functools import lru_cache
from typing import Final

from gatehouse.foundation.outbound import OutboundRequest
from gatehouse.foundation.outbound.lean.route import Route

#: headers of the caller that are not sent, because this client sets the framing
_FRAMING_HEADERS: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding"}
)
_DEFAULTS: Final = {"User-Agent": "gatehouse", "Accept": "*/*", "Accept-Encoding": "identity"}
_METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def head_of(request: OutboundRequest, route: Route) -> bytes:
    """Returns the head of a request. Raises `ValueError` for a header that contains a line break or NUL, because such a
    header could inject a second request."""
    headers, body, start = request.headers, request.body, route.start
    names, defaults, own_host = _plan(tuple(headers))
    fields = "".join([f"{name}: {headers[name]}\r\n" for name in names])
    if fields.count("\n") != len(names) or fields.count("\r") != len(names) or "\0" in fields:
        raise ValueError("a header contains a line break or NUL")
    if own_host:
        line, _, from_host = start.partition("Host: ")
        start = line + from_host.partition("\r\n")[2]
    if body:
        return f"{request.method}{start}{fields}{defaults}Content-Length: {len(body)}\r\n\r\n".encode()
    length = "" if request.method in _METHODS_WITHOUT_BODY else "Content-Length: 0\r\n"
    return f"{request.method}{start}{fields}{defaults}{length}\r\n".encode()


@lru_cache(maxsize=256)
def _plan(names: tuple[str, ...]) -> tuple[tuple[str, ...], str, bool]:
    """Returns the names of the caller's headers that are sent, the default headers that the caller has not set, and
    whether the caller has set `Host`."""
    lower = {name.lower() for name in names}
    defaults = "".join(f"{name}: {value}\r\n" for name, value in _DEFAULTS.items() if name.lower() not in lower)
    return tuple(name for name in names if name.lower() not in _FRAMING_HEADERS), defaults, "host" in lower
