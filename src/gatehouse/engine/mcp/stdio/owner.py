"""The owner of the stdio servers of this machine. Workers send requests over a Unix socket."""

import asyncio
import ctypes
import os
import signal
import socket
import struct
import sys
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.engine.mcp.stdio import wire
from gatehouse.engine.mcp.stdio.authentication import KEY_BYTES, NotAuthenticated, prove_owner
from gatehouse.engine.mcp.stdio.commands import Commands, read_commands
from gatehouse.engine.mcp.stdio.pool import ServerPool
from gatehouse.engine.mcp.stdio.server import ServerFailed
from gatehouse.foundation import log as logs
from gatehouse.foundation.processes import frames
from gatehouse.foundation.processes.children import die_with_parent
from gatehouse.foundation.settings import BadSettings, Settings

log = structlog.get_logger(__name__)

_PR_SET_CHILD_SUBREAPER: Final = 36
#: the folder of the servers' working directories in `GATEHOUSE_HOME`
_FOLDER: Final = "mcp-stdio"
_PEER: Final = struct.Struct("3i")
#: maximum number of requests of one worker in progress
_MAX_REQUESTS: Final = 2_000


def run() -> None:
    """Serve until SIGTERM. Raises `BadSettings`."""
    # SIGKILL, because this process must not outlive its parent. Its launchers notice its death and kill their servers.
    die_with_parent(signal.SIGKILL)
    # Ctrl-C is sent to all processes of a terminal. Workers that are draining still need this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    settings = Settings.from_environment()
    logs.configure(settings.log_level)
    commands = read_commands(settings.mcp_stdio_commands)
    if commands is not None:
        key = sys.stdin.buffer.read(KEY_BYTES)
        if len(key) != KEY_BYTES:
            raise BadSettings("the owner of stdio servers is started by `gatehouse serve` only")
        asyncio.run(_serve(commands, settings.gatehouse_home.absolute(), key))


async def _serve(commands: Commands, home: Path, key: bytes) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    pool = ServerPool(commands, home / _FOLDER)
    pool.start()
    owner = _Owner(pool, key)
    await asyncio.start_unix_server(owner.answer, sock=frames.private_listener(home / wire.SOCKET))
    await ended.wait()
    await pool.stop()


class _Owner:
    def __init__(self, pool: ServerPool, key: bytes) -> None:
        self._pool = pool
        self._key = key
        self._parent = os.getppid()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running: dict[int, asyncio.Task[None]] = {}
        #: numbers of the servers that were prepared for this worker
        prepared: set[int] = set()
        try:
            if not self._is_worker(writer.get_extra_info("socket")):
                log.error("mcp_stdio.stranger")
                return
            await prove_owner(self._key, reader, writer)
            while (data := await frames.read(reader)) is not None:
                question = wire.question.decode(data)
                if isinstance(question, wire.CancelSend):
                    if (task := running.get(question.number)) is not None:
                        task.cancel()
                elif isinstance(question, wire.EndObsolete):
                    # At once, so that messages that arrive later find the servers ended.
                    self._pool.end_obsolete(question)
                elif len(running) >= _MAX_REQUESTS:
                    writer.write(wire.framed(wire.SendFailed(question.number, "no_connection_free")))
                else:
                    running[question.number] = task = asyncio.create_task(self._reply(question, writer, prepared))
                    task.add_done_callback(partial(_forget, running, question.number))
        except NotAuthenticated:
            log.error("mcp_stdio.stranger")  # noqa: TRY400 - the trace says nothing more
        except (msgspec.DecodeError, frames.TooLong) as error:
            log.error("mcp_stdio.bad_message", error=type(error).__name__)  # noqa: TRY400 - the error may quote text
        finally:
            writer.close()
            for task in list(running.values()):
                task.cancel()

    async def _reply(
        self, question: wire.Prepare | wire.Send, writer: asyncio.StreamWriter, prepared: set[int]
    ) -> None:
        number = question.number
        reply: wire.Reply
        try:
            if isinstance(question, wire.Prepare):
                process = await self._pool.prepare(question)
                prepared &= self._pool.numbers
                prepared.add(process)
                reply = wire.ServerReady(number, process)
            elif question.process not in prepared:
                reply = wire.SendFailed(number, "not_running")
            else:
                reply = wire.Answered(number, await self._pool.send(question.process, question.body))
        except ServerFailed as failed:
            reply = wire.SendFailed(number, failed.reason)
        except Exception:
            log.exception("mcp_stdio.fault")
            reply = wire.SendFailed(number, "process_failed")
        if not writer.is_closing():
            writer.write(wire.framed(reply))

    def _is_worker(self, connection: socket.socket) -> bool:
        """Return whether the peer is the parent of this process or a child of that parent. No server is a child of that
        parent, because launchers adopt their descendants. A server can still make the kernel report such a process
        (`authentication`), so this check only refuses most strangers before anything is read."""
        pid, _, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        return pid == self._parent or _parent_of(pid) == self._parent


def _forget(running: dict[int, asyncio.Task[None]], number: int, task: asyncio.Task[None]) -> None:
    if running.get(number) is task:
        del running[number]


def _parent_of(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        # The name of the process is in parentheses, and may contain blanks and parentheses.
        return int(status.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
