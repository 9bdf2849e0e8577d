"""One MCP server as a process: starts it, exchanges messages with it within bounds, and ends it.

The messages of all callers go to the same pipe. Each request gets its own number as id, so that a server's answer
reaches the request that it belongs to.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import UNSET, Raw, UnsetType

from gatehouse.engine.mcp.messages import IDENTITY, LEGACY
from gatehouse.engine.mcp.stdio.commands import Command
from gatehouse.engine.mcp.stdio.folders import remove_folder
from gatehouse.engine.mcp.upstream import MAX_ANSWER_BYTES
from gatehouse.foundation.tasks import cancel_all

log = structlog.get_logger(__name__)

#: maximum number of requests in progress at one server
MAX_REQUESTS: Final = 64
#: maximum number of messages, and of bytes, that a server may send without answering a request
MAX_UNSOLICITED_MESSAGES: Final = 1_000
MAX_UNSOLICITED_BYTES: Final = 4 * 1024**2
_MAX_UNSENT_BYTES: Final = 1024**2
_HANDSHAKE_SECONDS: Final = 30.0
#: time after which the launcher is killed. It is longer than the time that the launcher gives its command.
_STOP_SECONDS: Final = 10.0
_LAST_ANSWERS_SECONDS: Final = 1.0
_STDERR_CHUNK_BYTES: Final = 64 * 1024
_STDERR_LINES_PER_MINUTE: Final = 100
_STDERR_LINE_CHARACTERS: Final = 500
_MAX_REASON_BYTES: Final = 64
_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
_METHOD_NOT_FOUND: Final = -32601
#: the variables of every process. The organization's and the operator's variables are added.
_ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class Launch(msgspec.Struct, kw_only=True):
    """What the launcher needs (`launcher.py`)."""

    command: tuple[str, ...]
    environment: dict[str, str]
    folder: str
    memory_mib: int
    cpu_seconds: int
    open_files: int
    processes: int
    file_mib: int
    folder_mib: int
    #: the folder whose size is measured, which is deleted at the end
    own_folder: str
    nice: int


class ServerFailed(Exception):
    """A message was not answered. `reason` is a key of `upstream._SENTENCES`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RpcMessage(msgspec.Struct, kw_only=True):
    """A JSON-RPC message whose contents are not decoded."""

    jsonrpc: str = ""
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()

    def response(self, message_id: int | str | UnsetType | None) -> bytes:
        """Return this response with the id of the worker's request."""
        name, value = ("error", self.error) if bytes(self.error) else ("result", self.result)
        return _encode({"jsonrpc": "2.0", "id": message_id, name: value})


class _Handshake(msgspec.Struct):
    protocol_version: str = msgspec.field(name="protocolVersion", default="")


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(RpcMessage).decode


class ServerProcess:
    """A running server. `name` identifies it in logs. `on_end` is called when all of its processes are dead, or when it
    could not be started. `sweep` kills processes whose launcher was killed."""

    def __init__(
        self,
        number: int,
        organization: str,
        name: str,
        *,
        definition: str,
        command: Command,
        values: Mapping[str, str],
        on_end: Callable[["ServerProcess"], None],
        sweep: Callable[[], None],
    ) -> None:
        self.number, self.organization, self.command = number, organization, command
        self.name, self.definition = name, definition
        self._values, self._on_end = values, on_end
        self._sweep = sweep
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[RpcMessage]] = {}
        self._handshake: asyncio.Task[RpcMessage] | None = None
        self._unsolicited_messages = self._unsolicited_bytes = self._stderr_bytes = 0
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._folder: Path | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure = ""
        self.started_at = self.used_at = time.monotonic()
        #: whether no further message can be sent
        self.closed = False
        self._closing = asyncio.Event()
        #: whether this host has ended the server, because it was idle or is not needed
        self.stopped = False
        #: whether the server ended before it answered the handshake
        self.failed_handshake = False
        self._ended = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The id of the launcher."""
        return None if self._process is None else self._process.pid

    def is_idle(self, seconds: float) -> bool:
        """Return whether the server was not used for this time. One that is starting is not idle."""
        return self._task is not None and not self._waiting and time.monotonic() - self.used_at > seconds

    async def start(self, root: Path) -> None:
        """Start the command in a new folder below `root`. Raises any exception, after everything was removed."""
        try:
            await self._start(root)
        except BaseException:
            self.close("process_failed")
            if self._task is None:
                if self._control is not None:
                    self._control.close()
                if self._folder is not None:
                    # The command has not run, so the folder is empty.
                    remove_folder(self._folder)
                self._finish()
            raise

    async def _start(self, root: Path) -> None:
        command = self.command
        self._folder = Path(tempfile.mkdtemp(dir=root))
        own = {"HOME": str(self._folder), "TMPDIR": str(self._folder)}
        launch = Launch(
            command=command.command,
            environment={**_ENVIRONMENT, **own, **command.fixed_environment, **self._values},
            folder=command.working_directory or str(self._folder),
            memory_mib=command.memory_mib,
            cpu_seconds=command.cpu_seconds,
            open_files=command.open_files,
            processes=command.processes,
            file_mib=command.file_mib,
            folder_mib=command.folder_mib,
            own_folder=str(self._folder),
            nice=command.nice,
        )
        line = _encode(launch) + b"\n"
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        with theirs:
            # The environment reaches the launcher by its socket, so that no list of processes shows it.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(_LAUNCHER), str(theirs.fileno()),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}, cwd="/",
                pass_fds=(theirs.fileno(),), start_new_session=True, limit=MAX_ANSWER_BYTES,
            )  # fmt: skip
        self._task = asyncio.create_task(self._run(self._process), name="stdio server")
        with contextlib.suppress(OSError):
            # If the launcher has died, `_run` notices it.
            await asyncio.get_running_loop().sock_sendall(self._control, line)
        self._log("mcp_stdio.started", pid=self._process.pid)

    async def initialize(self) -> RpcMessage:
        """Initialize the server in the older revision, once. Returns its answer. Raises `ServerFailed`."""
        if self._handshake is None:
            self._handshake = asyncio.create_task(self._initialized(), name="stdio handshake")
            self._handshake.add_done_callback(lambda done: done.cancelled() or done.exception())
        # A caller that disconnects must not interrupt the handshake, because other callers need it too.
        return await asyncio.shield(self._handshake)

    async def _initialized(self) -> RpcMessage:
        params = Raw(_encode({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": IDENTITY}))
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                answer = await self._request("initialize", params)
        except TimeoutError:
            self.close("process_failed")
            raise ServerFailed("process_failed") from None
        if bytes(answer.error):
            # The next caller tries again.
            self._handshake = None
        with contextlib.suppress(msgspec.DecodeError):
            if bytes(answer.result) and msgspec.json.decode(answer.result, type=_Handshake).protocol_version == LEGACY:
                self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def send(self, body: bytes) -> bytes:
        """Send a worker's message, and return the response. Empty after a notification. Raises `ServerFailed`."""
        self.used_at = time.monotonic()
        message = _decode(body)
        if message.method is UNSET:
            raise ServerFailed("bad_reply")
        if message.method == "initialize":
            return (await self.initialize()).response(message.id)
        if message.id is UNSET:
            # The handshake has sent `notifications/initialized`, the only notification of workers.
            return b""
        try:
            return (await self._request(message.method, message.params)).response(message.id)
        finally:
            self.used_at = time.monotonic()

    async def _request(self, method: str, params: Raw) -> RpcMessage:
        if len(self._waiting) >= MAX_REQUESTS:
            raise ServerFailed("no_connection_free")
        number = next(self._numbers)
        answer: asyncio.Future[RpcMessage] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._unsolicited_messages = self._unsolicited_bytes = 0
        try:
            self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            # The protocol forbids the cancellation of the handshake.
            if method != "initialize":
                with contextlib.suppress(ServerFailed):
                    cancelled = {"requestId": number, "reason": "The caller no longer waits."}
                    self._write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            raise
        finally:
            del self._waiting[number]

    def _write(self, message: dict[str, object]) -> None:
        process = self._process
        if self.closed or process is None or process.stdin is None or process.stdin.is_closing():
            raise ServerFailed(self._failure or "process_ended")
        if process.stdin.transport.get_write_buffer_size() > _MAX_UNSENT_BYTES:
            # The server does not read its input.
            raise ServerFailed("no_connection_free")
        process.stdin.write(_encode(message) + b"\n")

    def close(self, failure: str = "") -> None:
        """End the server without waiting. Requests in progress fail with `failure`, or with `process_ended`. Without a
        failure, the command gets some time to end by itself."""
        if self.closed:
            return
        self.closed, self._failure = True, failure
        is_in_handshake = self._handshake is not None and not self._handshake.done()
        self.failed_handshake = is_in_handshake and not self.stopped
        self._closing.set()
        self._fail_waiting()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        if self._control is not None:
            with contextlib.suppress(OSError):
                if failure:
                    self._control.shutdown(socket.SHUT_WR)
                else:
                    self._control.send(b"T")

    async def stop(self) -> None:
        """End the server, and wait until all of its processes are dead."""
        self.stopped = True
        self.close()
        await self._ended.wait()

    def _finish(self) -> None:
        self._ended.set()
        self._on_end(self)

    def _fail_waiting(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ServerFailed(self._failure or "process_ended"))

    async def _run(self, process: asyncio.subprocess.Process) -> None:
        """Read from the server until its end, then remove what it leaves."""
        reason = "fault"
        try:
            reason = await self._until_end(process)
            if self._folder is not None and not await asyncio.to_thread(remove_folder, self._folder):
                self._log("mcp_stdio.folder_left")
        except Exception:
            log.exception("mcp_stdio.fault", organization=self.organization, server=self.name)
            self.close("process_failed")
        finally:
            if self._control is not None:
                self._control.close()
            seconds = round(time.monotonic() - self.started_at, 1)
            self._log("mcp_stdio.ended", reason=reason, seconds=seconds, stderr_bytes=self._stderr_bytes)
            self._finish()

    async def _until_end(self, process: asyncio.subprocess.Process) -> str:
        """Read from the server until all of its processes are dead. Return why it has ended."""
        assert process.stdout is not None
        assert process.stderr is not None
        answers = asyncio.create_task(self._read_answers(process.stdout), name="stdio answers")
        errors = asyncio.create_task(self._read_errors(process.stderr), name="stdio errors")
        ended = asyncio.create_task(self._read_reason(), name="stdio end")
        closing = asyncio.create_task(self._closing.wait(), name="stdio close")
        await asyncio.wait({answers, ended, closing}, return_when=asyncio.FIRST_COMPLETED)
        if not self.closed:
            # The last answers may still be in the pipe. A descendant of a killed launcher keeps the pipe open.
            await asyncio.wait({answers}, timeout=_LAST_ANSWERS_SECONDS)
            self.close()
        # A launcher that its command has stopped (SIGSTOP) does not end by itself.
        await asyncio.wait({ended}, timeout=_STOP_SECONDS)
        reason = self._failure or (ended.result() if ended.done() else "") or "launcher killed"
        if process.returncode is None:
            # Usually the launcher is about to end. The death of a launcher that hangs kills its command.
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        self._sweep()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        await cancel_all(answers, errors, ended, closing)
        return reason

    async def _read_reason(self) -> str:
        """Wait for the end of the launcher, when all descendants are dead. Return why the command has ended."""
        assert self._control is not None
        try:
            data = await asyncio.get_running_loop().sock_recv(self._control, _MAX_REASON_BYTES)
        except OSError:
            return ""
        return data.decode("ascii", "replace")

    async def _read_answers(self, stdout: asyncio.StreamReader) -> None:
        while not self._failure:
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                self.close("reply_too_large")
                return
            self._take(line)

    def _take(self, line: bytes) -> None:
        """Pass a response to its request. Everything else is counted, and answered if it is a request."""
        try:
            message = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            message = RpcMessage()
        if message.method is UNSET and type(message.id) is int:
            answer = self._waiting.get(message.id)
            if answer is not None and not answer.done() and (bytes(message.result) or bytes(message.error)):
                answer.set_result(message)
                return
        self._unsolicited_messages += 1
        self._unsolicited_bytes += len(line)
        if self._unsolicited_messages > MAX_UNSOLICITED_MESSAGES or self._unsolicited_bytes > MAX_UNSOLICITED_BYTES:
            self.close("too_many_events")
        elif message.method is not UNSET and message.id is not UNSET:
            self._answer(message)

    def _answer(self, request: RpcMessage) -> None:
        """Answer a request of the server. The gateway answers pings only."""
        answer: dict[str, object] = {"result": {}}
        if request.method != "ping":
            answer = {"error": {"code": _METHOD_NOT_FOUND, "message": "The gateway does not serve this method."}}
        with contextlib.suppress(ServerFailed):
            self._write({"jsonrpc": "2.0", "id": request.id, **answer})

    async def _read_errors(self, stderr: asyncio.StreamReader) -> None:
        """Read standard error, so that the server never waits for it. Log some lines if the operator permits it and the
        server has no values of variables: a value that a line contains in parts, or encoded, cannot be found."""
        is_logged = self.command.log_stderr and not self._values and not self.command.fixed_environment
        if self.command.log_stderr and not is_logged:
            self._log("mcp_stdio.stderr_not_logged", reason="the server has values of variables")
        minute, lines = 0.0, 0
        while chunk := await stderr.read(_STDERR_CHUNK_BYTES):
            self._stderr_bytes += len(chunk)
            now = time.monotonic()
            if now - minute >= 60:
                minute, lines = now, 0
            if not is_logged or lines >= _STDERR_LINES_PER_MINUTE:
                continue
            for line in chunk.decode("utf-8", "replace").splitlines()[: _STDERR_LINES_PER_MINUTE - lines]:
                lines += 1
                self._log("mcp_stdio.stderr", text=line[:_STDERR_LINE_CHARACTERS])

    def _log(self, event: str, **fields: object) -> None:
        log.info(event, organization=self.organization, server=self.name, **fields)
