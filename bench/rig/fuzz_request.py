"""Any bytes, in any pieces, as what a client sends to the ingress. `INGRESS` says to which: `lean` (unless told) or
`uvicorn`.

The first byte of an input says how the connection ends, the second in pieces of which size the rest arrives. What may
not be, whatever the bytes:

- an exception; a wait that never ends
- other requests where the same bytes arrive at once, or in other pieces
- another request than a second parser reads (h11, where it takes the bytes at all): smuggling begins so
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
    """The path has no query, and no slash at its end."""

    method: bytes
    path: bytes
    body: bytes


#: Those that came to their end, of the bytes that are being given now.
reached: list[Request] = []


class _Engine:
    """Answers without looking."""

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
    """Administration."""
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
# A line for each input that is refused.
logging.getLogger("uvicorn").disabled = logging.getLogger("uvicorn.error").disabled = True
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


async def one(data: bytes) -> None:
    if len(data) < 2:
        return
    how, size, sent = data[0], data[1] or 1, data[2:]
    if INGRESS == "uvicorn" and b"upgrade" in sent.lower():
        # Behind its parser the body is lost where such a head arrives in two pieces.
        return
    at_once = await _requests(sent, len(sent) or 1, how)
    in_pieces = await _requests(sent, size, how)
    # Where what follows is refused, requests that wait for their turn may be given up.
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
    """Of a target that is no path it is known only where it begins."""
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
                    # What follows it is no body, whatever it declares (RFC 9110, 9.3.6).
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
