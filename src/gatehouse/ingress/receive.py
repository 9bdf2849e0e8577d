"""Reads the head of a request: the relevant headers, the address of the client, and the id."""

import time
from typing import Final, NamedTuple

from starlette.types import Scope

from gatehouse.engine.exchange import Received
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.middleware import request_id

#: The headers that are read. Other headers are not decoded, because decoding twenty headers would cost more than
#: authentication.
READ: Final = frozenset(
    {
        "authorization",
        "x-api-key",
        "x-request-id",
        "content-length",
        "content-type",
        "expect",
        "anthropic-version",
        "anthropic-beta",
        "cache-control",
        "user-agent",
        "traceparent",
        "tracestate",
        "x-gateway-timing",
        "x-gateway-tags",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
    }
)
_READ_BYTES: Final = frozenset(name.encode() for name in READ)
#: headers with list values, whose lines are joined (RFC 9110, 5.3)
LISTS: Final = frozenset({"tracestate", "x-gateway-tags"})


def headers_of(scope: Scope) -> dict[str, str]:
    """Return those headers of a request whose names are in `READ`."""
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _READ_BYTES}
    for list_name in LISTS & headers.keys():
        field = list_name.encode()
        headers[list_name] = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == field)
    return headers


def read_head(scope: Scope, addresses: ClientAddresses) -> Received:
    """Return a request to the administration API, without its body."""
    return received_now(scope["method"], Target(scope["path"]), headers_of(scope), addresses.of_scope(scope))


class Target(NamedTuple):
    """What the target of a request says. `path` is the path under which the request is limited, recorded and answered.
    `query` is set for lists of models only, and `body` for calls that are requests without a body."""

    path: str
    query: str = ""
    body: bytes = b""


def received_now(
    method: str, target: Target, headers: dict[str, str], client_address: str, dialect: str | None = None
) -> Received:
    """Return a request that arrives now. `headers` has those headers of the request whose names are in `READ`."""
    return Received(
        request_id=request_id.choose(headers.get("x-request-id")),
        method=method,
        path=target.path,
        headers=headers,
        client_address=client_address,
        received_at=time.time(),
        started=time.monotonic(),
        dialect=dialect,
        body=target.body,
        query=target.query,
    )
