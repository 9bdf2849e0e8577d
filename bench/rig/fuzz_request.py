"""Passes arbitrary bytes, in arbitrary pieces, to the ingress as the data of a client. The variable `INGRESS` selects
the ingress: `lean` (the default) or `uvicorn`.

The first byte of an input determines how the connection ends. The second byte determines the size of the pieces in
which the other bytes arrive. These are faults:

- an exception, or a wait that never ends
- different requests if the same bytes arrive at once or in other pieces
- a different request from that of a second parser (h11, if it accepts the bytes), which would allow request smuggling
- a task or a timer that is left over
"""

import asyncio
import logging
import os
from typing import Any, NamedTuple, cast

import h11
import structlog
import uvicorn
from uvicorn.server import ServerState

from gatehouse.engine.exchange import Answer, ReadBody, Received
from gatehouse.engine.run import Engine
from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.ingress.gateway import Gateway
from gatehouse.ingress.in_progress import InProgress
from gatehouse.ingress.protocol_choice import Ingress, protocol_of
from rig.fuzz_wire import Fault, Wire, feed

INGRESS = cast("Ingress", os.environ.get("INGRESS", "lean"))


class Request(NamedTuple):
    """A request that the ingress has recognized. `path` has no query and no trailing slash."""

    method: bytes
    path: bytes
    body: bytes


#: The complete requests of the current input.
reached: list[Request] = []


class _Engine:
    """An engine that answers every request in the same way."""

    async def answer(self, x: Received, read: ReadBody, *_: Any) -> Answer:
        try:
            body = await read()
        except Refusal as error:
            return Answer(status=error.status, headers=error.headers)
        reached.append(Request(x.method.encode(), x.path.encode("latin-1"), body))
        return Answer(status=200, headers={}, body=b"{}")

    scan = answer

    async def identify(self, x: Received, _: str) -> None:
        reached.append(Request(x.method.encode(), x.path.encode("latin-1"), b""))
        raise Unauthenticated


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """The application behind the gateway, in place of the administration API."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    reached.append(Request(scope["method"].encode(), scope["raw_path"].removesuffix(b"/"), body))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


gateway = Gateway(
    cast("Engine", _Engine()),
    _app,
    addresses=ClientAddresses(()),
    max_request_bytes=10_000,
    body_timeout_seconds=60,
    calls=InProgress(),
)
connection = protocol_of(INGRESS, lambda: gateway)
config = uvicorn.Config(gateway, http=connection, ws="none", lifespan="off", log_config=None, access_log=False)
config.load()
# uvicorn would log a line for each refused input.
logging.getLogger("uvicorn").disabled = logging.getLogger("uvicorn.error").disabled = True
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


async def one(data: bytes) -> None:
    if len(data) < 2:
        return
    how, size, sent = data[0], data[1] or 1, data[2:]
    if INGRESS == "uvicorn" and b"upgrade" in sent.lower():
        # uvicorn's parser loses the body if such a head arrives in two pieces.
        return
    at_once = await _requests(sent, len(sent) or 1, how)
    in_pieces = await _requests(sent, size, how)
    # If later input is refused, requests that wait for their turn may be dropped.
    if any(one != other for one, other in zip(at_once, in_pieces, strict=False)):
        raise Fault(f"at once {at_once!r}, in pieces of {size} {in_pieces!r}")
    for ours, other in zip(at_once, _as_another_reads_them(sent), strict=False):
        if not _same(ours, other):
            raise Fault(f"the ingress reads {ours!r}, h11 {other!r}")


async def _requests(sent: bytes, size: int, how: int) -> list[Request]:
    reached.clear()
    state = ServerState()
    tasks = len(asyncio.all_tasks())
    protocol = connection(config=config, server_state=state, app_state={})
    wire = Wire(protocol)
    protocol.connection_made(wire)
    await feed(wire, sent, size)
    for _ in range(len(sent) // 16 + 20):
        await asyncio.sleep(0)
    wire.lose(ConnectionResetError() if how & 1 else None)
    for _ in range(20):
        if len(asyncio.all_tasks()) == tasks:
            break
        await asyncio.sleep(0)
    else:
        raise Fault("a task is left over")
    if state.connections or not protocol._check_timer.cancelled():
        raise Fault("a connection or a timer is left over")
    return reached.copy()


def _same(ours: Request, other: Request) -> bool:
    """Return whether two requests are equal. If a target is not a path, only its beginning is compared."""
    plain = other.path.startswith(b"/") and b"#" not in other.path
    return (ours.method, ours.body) == (other.method, other.body) and (not plain or ours.path == other.path)


def _as_another_reads_them(sent: bytes) -> list[Request]:
    other = h11.Connection(h11.SERVER)
    results: list[Request] = []
    try:
        other.receive_data(sent)
        while True:
            match other.next_event():
                case h11.Request(method=b"CONNECT"):
                    # The data after this head is not a body, regardless of its headers (RFC 9110, 9.3.6).
                    return results
                case h11.Request() as head:
                    body = b""
                case h11.Data() as data:
                    body += data.data
                case h11.EndOfMessage():
                    path = head.target.partition(b"?")[0].removesuffix(b"/")
                    results.append(Request(head.method, path, body))
                    other.send(h11.Response(status_code=200, headers=[(b"content-length", b"0")]))
                    other.send(h11.EndOfMessage())
                    other.start_next_cycle()
                case _:
                    return results
    except (h11.RemoteProtocolError, h11.LocalProtocolError):
        return results
