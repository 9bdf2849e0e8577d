"""The pool of processes that read files, for one event loop."""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from typing import Final, Literal, TypeAlias

import msgspec
import structlog

from gatehouse.detection.documents.output import Reading, Unread

log = structlog.get_logger(__name__)

#: Number of bytes of the length before each message, little-endian.
LENGTH_PREFIX_BYTES: Final = 4
#: Maximum number of files that are read concurrently.
READER_PROCESSES: Final = 2
#: Maximum total size of the files that are being read or wait to be read.
MAX_WAITING_BYTES: Final = 64 * 1024**2
#: Number of files after which a process is replaced, because libraries may leak memory.
_MAX_FILES: Final = 200
#: Environment variables that are passed to the process. They contain no secrets.
_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "COVERAGE_PROCESS_START")


Failure: TypeAlias = Literal["timeout", "overloaded", "unavailable"]


class ReaderUnavailable(Exception):
    """No process could be used to read the file. The file itself may be readable."""

    def __init__(self, reason: Failure) -> None:
        super().__init__(reason)
        self.reason: Failure = reason


class ReadRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    data: bytes
    declared_as_text: bool


class _DocumentReader:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.files = 0


class Readers:
    """Reads files in a pool of processes. `stop` must be called in the event loop that used the pool."""

    def __init__(self, *, readers: int = READER_PROCESSES) -> None:
        self._free = asyncio.Semaphore(readers)
        self._idle: list[_DocumentReader] = []
        self._waiting_bytes = 0

    async def read(self, data: bytes, *, declared_as_text: bool, deadline: float) -> Reading:
        """Return the content of a file. `deadline` is a monotonic time in seconds. If reading is not finished by then,
        or the process crashes, the result says that the file is unread. Raises `ReaderUnavailable` if no process
        becomes free before `deadline`, or if the files that are read or wait exceed `MAX_WAITING_BYTES`."""
        if self._waiting_bytes and self._waiting_bytes + len(data) > MAX_WAITING_BYTES:
            raise ReaderUnavailable("overloaded")
        self._waiting_bytes += len(data)
        try:
            try:
                await asyncio.wait_for(self._free.acquire(), deadline - time.monotonic())
            except TimeoutError:
                raise ReaderUnavailable("timeout") from None
            try:
                return await self._read(ReadRequest(data, declared_as_text), deadline)
            finally:
                self._free.release()
        finally:
            self._waiting_bytes -= len(data)

    async def stop(self) -> None:
        for reader in self._idle:
            await _end(reader)
        self._idle.clear()

    def _reusable(self) -> _DocumentReader | None:
        """Return an idle process that is still running, or None."""
        while self._idle:
            reader = self._idle.pop()
            if reader.process.returncode is None:
                return reader
        return None

    async def _read(self, request: ReadRequest, deadline: float) -> Reading:
        reader = self._reusable() or await _start_reader()
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                answer = await _exchange(reader.process, msgspec.msgpack.encode(request))
            reading = msgspec.msgpack.decode(answer, type=Reading)
        except TimeoutError:
            log.warning("documents.too_slow", size=len(request.data))
            reading = Reading("", (Unread("file", "timeout"),))
        except (OSError, asyncio.IncompleteReadError, msgspec.DecodeError):
            await reader.process.wait()
            log.warning("documents.reader_ended", status=reader.process.returncode, size=len(request.data))
            reading = Reading("", (Unread("file", "crashed"),))
        else:
            reader.files += 1
            if reader.files < _MAX_FILES:
                self._idle.append(reader)
                return reading
        finally:
            if reader not in self._idle:
                await _end(reader)
        return reading


async def _start_reader() -> _DocumentReader:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    command = (sys.executable, "-P", "-m", "gatehouse.detection.documents")
    try:
        return _DocumentReader(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment))
    except OSError:
        log.exception("documents.no_reader")
        raise ReaderUnavailable("unavailable") from None


async def _exchange(process: Process, message: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(len(message).to_bytes(LENGTH_PREFIX_BYTES, "little") + message)
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(LENGTH_PREFIX_BYTES), "little")
    return await process.stdout.readexactly(size)


async def _end(reader: _DocumentReader) -> None:
    if reader.process.returncode is None:
        reader.process.kill()
    await reader.process.wait()
