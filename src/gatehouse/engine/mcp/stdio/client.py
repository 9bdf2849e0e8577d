"""A worker's side of stdio servers. A server is an `Outbound`, so its calls take the same path as those over HTTP."""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.engine.mcp.messages import MODERN
from gatehouse.engine.mcp.stdio import wire
from gatehouse.engine.mcp.stdio.authentication import KEY, NotAuthenticated, prove_worker
from gatehouse.engine.mcp.stdio.commands import Commands, read_commands
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundReply, OutboundRequest, ReplyTooLarge
from gatehouse.foundation.processes import frames
from gatehouse.foundation.tasks import cancel_all
from gatehouse.policy.mcp import McpServerRecord

log = structlog.get_logger(__name__)

#: Maximum time for which a request waits for the owner. A restart usually takes about a second.
_CONNECT_SECONDS: Final = 20.0
_CONNECT_INTERVAL_SECONDS: Final = 0.05
#: Maximum unsent bytes, if the owner does not read its messages.
_MAX_UNSENT_BYTES: Final = 32 * 1024**2
#: Attempts to send a message. The first has no effect if the server was ended meanwhile to make room for another one.
_MAX_ATTEMPTS: Final = 2


class ProcessFailed(OutboundFailed):
    """A server did not answer. `reason` is a key of `upstream._SENTENCES`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StdioClient:
    """The client of one event loop. It connects at the first use, and again after the owner was restarted."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self.commands = commands
        self._socket = home / wire.SOCKET
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[wire.Reply]] = {}
        self._connecting = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def offers(self, tenant_id: TenantId, server: McpServerRecord) -> bool:
        """Return whether the operator offers the server's command to the organization."""
        return server.stdio is not None and self.commands.offered(server.stdio.command, str(tenant_id)) is not None

    def outbound(
        self, tenant_id: TenantId, server: McpServerRecord, environment: Mapping[str, str], owner: bytes
    ) -> Outbound:
        """Return the transport to a server. `owner` identifies the caller, if the server is not shared."""
        assert server.stdio is not None
        prepare = wire.Prepare(
            number=0,
            organization=str(tenant_id),
            server=str(server.id),
            command=server.stdio.command,
            environment=dict(environment),
            definition=server.stdio.definition,
            caller=hashlib.sha256(owner).digest(),
            is_legacy=False,
        )
        return _ServerOutbound(self, prepare)

    def end_obsolete(self, current: dict[str, str | None], is_complete: bool) -> None:
        """Make the owner end the processes of changed servers (see `wire.EndObsolete`), without waiting. The message is
        sent before any later request of this worker."""
        message = wire.EndObsolete(next(self._numbers), current, is_complete, time.monotonic())
        if self._writer is not None:
            self._tell(self._writer, message)
            return
        task = asyncio.create_task(self._tell_later(message), name="end obsolete stdio servers")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell_later(self, message: wire.EndObsolete) -> None:
        # If the owner does not answer, it has no processes, or ends them when it is killed.
        with contextlib.suppress(ProcessFailed):
            self._tell(await self._connected(), message)

    def _tell(self, writer: asyncio.StreamWriter, message: wire.EndObsolete) -> None:
        try:
            _write(writer, wire.framed(message))
        except (ProcessFailed, frames.TooLong):
            log.warning("mcp_stdio.not_ended")

    async def stop(self) -> None:
        await cancel_all(*self._telling)
        if self._task is not None:
            await cancel_all(self._task)

    async def ask(self, question: wire.Prepare | wire.Send, gate: Callable[[], None] | None = None) -> wire.Reply:
        """Send a question to the owner, and return its reply. `gate` is called right before the first byte. Raises
        `ProcessFailed`, and the errors of the gate."""
        writer = await self._connected()
        number = question.number = next(self._numbers)
        try:
            frame = wire.framed(question)
        except frames.TooLong:
            raise ProcessFailed("no_connection_free") from None
        if writer.transport.get_write_buffer_size() > _MAX_UNSENT_BYTES:
            raise ProcessFailed("no_connection_free")
        if gate is not None:
            gate()
        reply: asyncio.Future[wire.Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            _write(writer, frame)
            answer = await reply
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessFailed):
                _write(writer, wire.framed(wire.CancelSend(number)))
            raise
        finally:
            del self._waiting[number]
        if isinstance(answer, wire.SendFailed):
            raise ProcessFailed(answer.reason)
        return answer

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._connecting:
            deadline = time.monotonic() + _CONNECT_SECONDS
            while self._writer is None:
                try:
                    with frames.reachable(self._socket) as address:
                        reader, writer = await asyncio.open_unix_connection(address)
                    await self._authenticate(reader, writer)
                except (OSError, NotAuthenticated):
                    if time.monotonic() > deadline:
                        raise ProcessFailed("owner_unavailable") from None
                    await asyncio.sleep(_CONNECT_INTERVAL_SECONDS)
                else:
                    self._writer = writer
                    self._task = asyncio.create_task(self._read(reader, writer), name="stdio replies")
            return self._writer

    async def _authenticate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await prove_worker(KEY, reader, writer)
        except BaseException:
            writer.close()
            raise

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (data := await frames.read(reader)) is not None:
                reply = wire.reply.decode(data)
                # A reply to a request that has ended is dropped.
                if (waiting := self._waiting.get(reply.number)) is not None and not waiting.done():
                    waiting.set_result(reply)
        except (msgspec.DecodeError, frames.TooLong):
            log.exception("mcp_stdio.bad_message")
        finally:
            self._writer = None
            writer.close()
            for number, waiting in self._waiting.items():
                if not waiting.done():
                    waiting.set_result(wire.SendFailed(number, "process_ended"))


def open_client(home: Path, commands_path: Path | None) -> StdioClient | None:
    """Return the client for the operator's file of commands, or None without a file. Raises `BadSettings`."""
    commands = read_commands(commands_path)
    return None if commands is None else StdioClient(home, commands)


def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    try:
        writer.write(frame)
    except (OSError, RuntimeError):
        # uvloop raises RuntimeError if the connection was lost but the reader has not noticed yet.
        raise ProcessFailed("owner_unavailable") from None


class _ServerOutbound:
    """The transport of one caller to one server. A request is a JSON-RPC message, and the reply is the response."""

    def __init__(self, client: StdioClient, prepare: wire.Prepare) -> None:
        self._client, self._prepare = client, prepare

    async def send(self, request: OutboundRequest) -> OutboundReply:
        if request.method != "POST":
            # There are no sessions to end.
            return _Reply(405, b"")
        is_legacy = request.headers.get("MCP-Protocol-Version") != MODERN
        for attempt in range(_MAX_ATTEMPTS):
            # The server runs and is initialized before the gate, so that nothing delays the call after it.
            prepared = await self._client.ask(msgspec.structs.replace(self._prepare, is_legacy=is_legacy))
            assert isinstance(prepared, wire.ServerReady)
            send = wire.Send(number=0, process=prepared.process, body=request.body)
            try:
                answered = await self._client.ask(send, request.before_first_byte)
            except ProcessFailed as failed:
                if failed.reason == "not_running" and attempt + 1 < _MAX_ATTEMPTS:
                    continue
                raise
            assert isinstance(answered, wire.Answered)
            return _Reply(200 if answered.body else 202, answered.body)
        raise AssertionError("unreachable")

    async def close(self) -> None: ...


class _Reply:
    """A response of a server (see `OutboundReply`)."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self._body = status, body
        self.headers: Mapping[str, str] = {"content-type": "application/json"}

    async def read(self, limit: int) -> bytes:
        if len(self._body) > limit:
            raise ReplyTooLarge
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None: ...
