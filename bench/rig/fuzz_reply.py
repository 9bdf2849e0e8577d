"""Passes arbitrary bytes, in arbitrary pieces, to Gatehouse's HTTP client as the answer of a provider.

The first byte of an input determines the request and how the connection ends. The second byte determines the size of
the pieces in which the other bytes arrive. These are faults:

- an exception other than `OutboundFailed`, or a wait that never ends
- a different outcome if the same bytes arrive at once or in other pieces
- a different answer from that of a second parser (h11, if it accepts the bytes)
- a kept connection on which the next call does not receive its own answer
- a call, a connection, a timer or a task that is left over
"""

import asyncio
from typing import TypeAlias

import h11

from gatehouse.foundation.outbound import OutboundFailed, ReplyTooLarge
from gatehouse.foundation.outbound.lean.connection import LeanConnection
from gatehouse.foundation.outbound.lean.pool import ConnectionPool, PoolLimits
from gatehouse.foundation.outbound.lean.reply import LeanReply
from gatehouse.foundation.outbound.lean.route import Origin
from rig.fuzz_wire import Fault, Wire, feed, within_turns

#: The status and body of an answer, or the name of a failure.
Outcome: TypeAlias = tuple[int, bytes] | str

LIMIT = 100_000
_ORIGIN = Origin("provider", 80, False, None)
_NEXT = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext"


async def one(data: bytes) -> None:
    if len(data) < 2:
        return
    how, size, answer = data[0], data[1] or 1, data[2:]
    at_once = await _outcome(answer, len(answer) or 1, how)
    in_pieces = await _outcome(answer, size, how)
    if at_once != in_pieces:
        raise Fault(f"at once {at_once!r}, in pieces of {size} {in_pieces!r}")
    _as_another_reads_it(answer, at_once, how)


async def _outcome(answer: bytes, size: int, how: int) -> Outcome:
    head, streamed, reset = how & 1, how & 2, how & 4
    pool = ConnectionPool(PoolLimits(4, 4, 4), 30.0)
    connection = LeanConnection(pool, _ORIGIN)
    wire = Wire(connection)
    connection.connection_made(wire)
    pool.opened(connection)
    tasks = len(asyncio.all_tasks())
    try:
        method = "HEAD" if head else "POST"
        task = asyncio.create_task(_request(pool, connection, method, streamed=bool(streamed)))
        # Run the call until it waits for the first time.
        await asyncio.sleep(0)
        await feed(wire, answer, size)
        if not task.done() and not wire.closed:
            if reset:
                wire.lose(ConnectionResetError())
            else:
                connection.eof_received()
                wire.lose(None)
        await within_turns(task)
        if connection.ended != wire.closed:
            raise Fault("a connection that is ended and open, or closed and kept")
        if not wire.closed and connection.keepalive_seconds > 0:
            await _next_answer(pool, connection, wire)
    finally:
        pool.close()
    await asyncio.sleep(0)
    if (pool._calls, pool._idle, pool._hosts, pool._open) != (0, 0, {}, set()) or connection._timer is not None:
        raise Fault("a call, a connection or a timer is left over")
    if len(asyncio.all_tasks()) != tasks:
        raise Fault("a task is left over")
    return task.result()


async def _request(pool: ConnectionPool, connection: LeanConnection, method: str, *, streamed: bool = False) -> Outcome:
    host = pool.enter(_ORIGIN)
    assert host is not None
    reply = LeanReply(
        pool, host, first_byte=60.0, idle=60.0, total_deadline=None, method=method, idempotent=method == "HEAD"
    )
    if connection in host.idle and pool.idle(host) is not connection:
        raise Fault("a connection at rest that cannot be used")
    try:
        await reply.send_request(connection, b"", b"")
        return reply.status, await (_streamed(reply) if streamed else reply.read(LIMIT))
    except OutboundFailed as failure:
        return type(failure).__name__
    finally:
        await reply.close()


async def _streamed(reply: LeanReply) -> bytes:
    body = b""
    async for chunk in reply.chunks():
        body += chunk
        if len(body) > LIMIT:
            raise ReplyTooLarge
    return body


async def _next_answer(pool: ConnectionPool, connection: LeanConnection, wire: Wire) -> None:
    task = asyncio.create_task(_request(pool, connection, "POST"))
    await asyncio.sleep(0)
    await feed(wire, _NEXT, 7)
    await within_turns(task)
    if task.result() != (200, b"next"):
        raise Fault(f"the next call got {task.result()!r}")


def _as_another_reads_it(answer: bytes, outcome: Outcome, how: int) -> None:
    """Compare the outcome with that of h11, if both accept the answer. h11 does not decompress bodies."""
    if isinstance(outcome, str) or b"content-encoding" in answer.lower():
        return
    other = h11.Connection(h11.CLIENT)
    other.send(h11.Request(method=b"HEAD" if how & 1 else b"POST", target=b"/", headers=[(b"Host", b"x")]))
    other.send(h11.EndOfMessage())
    status, body = 0, b""
    try:
        other.receive_data(answer)
        other.receive_data(b"")
        while True:
            match other.next_event():
                case h11.Response() as head:
                    status = head.status_code
                case h11.Data() as data:
                    body += data.data
                case h11.EndOfMessage():
                    break
                case h11.ConnectionClosed() | h11.NEED_DATA | h11.PAUSED:
                    return
    except h11.RemoteProtocolError:
        return
    if (status, body) != outcome:
        raise Fault(f"the HTTP client reads {outcome!r}, h11 {(status, body)!r}")
