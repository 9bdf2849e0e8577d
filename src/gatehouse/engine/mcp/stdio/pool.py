"""The stdio servers of this machine: which of them run, how many, and for how long."""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections import OrderedDict
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import structlog

from gatehouse.engine.mcp.stdio.commands import Command, Commands
from gatehouse.engine.mcp.stdio.folders import remove_folder
from gatehouse.engine.mcp.stdio.server import MAX_REQUESTS, ServerFailed, ServerProcess
from gatehouse.engine.mcp.stdio.wire import EndObsolete, Prepare
from gatehouse.foundation.tasks import cancel_all

log = structlog.get_logger(__name__)

#: A server that ends before this time has failed, and is started again with backoff.
MIN_UPTIME_SECONDS: Final = 10.0
_FIRST_BACKOFF_SECONDS: Final = 0.5
_MAX_BACKOFF_SECONDS: Final = 60.0
#: A server that was used within this time is not ended to make room for another one.
_MIN_IDLE_SECONDS: Final = 1.0
_CHECK_INTERVAL_SECONDS: Final = 1.0
#: Maximum number of callers that wait for the start or the handshake of one server. It could not serve more at a time.
_MAX_WAITING: Final = MAX_REQUESTS
#: maximum number of servers whose failures are remembered
_MAX_PLACES: Final = 1_000
#: maximum number of definitions that are remembered as obsolete
_MAX_OBSOLETE: Final = 10_000

#: organization, server, command, values of variables, caller. A process serves one key only, so the values and the
#: state of one organization never reach another one.
_Key: TypeAlias = tuple[str, str, str, tuple[tuple[str, str], ...], bytes]


class _Place(msgspec.Struct):
    """The place of one server: its process, if it runs, the number of callers that wait for it, and its failures in a
    row. `definition` is that of the newest caller, whose question arrived at the monotonic time `prepared_at`."""

    definition: str
    prepared_at: float = 0.0
    server: ServerProcess | None = None
    starting: asyncio.Task[ServerProcess] | None = None
    waiting: int = 0
    failures: int = 0
    not_before: float = 0.0


class ServerPool:
    """Starts servers at their first use, and ends them when they are idle. Their folders are below `root`."""

    def __init__(self, commands: Commands, root: Path) -> None:
        self._commands, self._root = commands, root
        self._numbers = count(1)
        self._places: OrderedDict[_Key, _Place] = OrderedDict()
        #: servers that run or are ending, by number
        self._servers: dict[int, ServerProcess] = {}
        #: Servers and their former definitions, with None for a server that is off. A worker that does not know of a
        #: change yet cannot start them again.
        self._obsolete: OrderedDict[tuple[str, str | None], None] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        # An owner that was killed has not removed the folders of its servers.
        replacement = f".{self._root.name}-"
        for root in (self._root, *filter(_is_folder, self._root.parent.glob(f"{replacement}*"))):
            if not remove_folder(root):
                log.error("mcp_stdio.folder_left", folder=str(root))
        try:
            self._root.mkdir(mode=0o700)
        except FileExistsError:
            # It contains something that this user cannot remove. The next start tries again.
            self._root = Path(tempfile.mkdtemp(prefix=replacement, dir=self._root.parent))
        self._task = asyncio.create_task(self._end_idle(), name="idle stdio servers")

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_all(self._task)
        await asyncio.gather(*(server.stop() for server in list(self._servers.values())))

    async def prepare(self, question: Prepare) -> int:
        """Return the number of a running server. Raises `ServerFailed`."""
        command = self._commands.offered(question.command, question.organization)
        if command is None or not question.environment.keys() <= set(command.environment):
            raise ServerFailed("command_not_offered")
        self._require_current(question)
        values = tuple(sorted(question.environment.items()))
        caller = b"" if command.shared else question.caller
        place = self._place((question.organization, question.server, question.command, values, caller), question)
        if place.waiting >= _MAX_WAITING:
            raise ServerFailed("no_connection_free")
        place.waiting += 1
        try:
            return await self._prepared(place, command, question)
        finally:
            place.waiting -= 1

    async def _prepared(self, place: _Place, command: Command, question: Prepare) -> int:
        server = place.server
        if server is None or server.closed:
            if place.starting is None or place.starting.done():
                if time.monotonic() < place.not_before:
                    raise ServerFailed("process_failed")
                place.starting = asyncio.create_task(self._start(place, command, question), name="start stdio server")
                place.starting.add_done_callback(lambda done: done.cancelled() or done.exception())
            # A caller that disconnects must not interrupt the start, because other callers may wait for it.
            server = await asyncio.shield(place.starting)
        server.used_at = time.monotonic()
        if question.is_legacy:
            await server.initialize()
        return server.number

    async def send(self, process: int, body: bytes) -> bytes:
        """Send a message to a server. Raises `ServerFailed`, with the reason `not_running` if nothing was written."""
        server = self._servers.get(process)
        if server is None or server.closed:
            raise ServerFailed("not_running")
        return await server.send(body)

    @property
    def numbers(self) -> set[int]:
        """The numbers of the servers that run or are ending."""
        return set(self._servers)

    def end_obsolete(self, message: EndObsolete) -> None:
        """Kill the processes of the servers in the message that have another definition. Their requests in progress
        fail with `server_ended`."""
        current = message.current
        for server_id, definition in current.items():
            self._obsolete.pop((server_id, definition), None)
            if definition is None:
                self._obsolete[server_id, None] = None
            else:
                self._obsolete.pop((server_id, None), None)
        # A worker can send a list late, when another worker has already started a server that was created since.
        created_later = {
            server_id for (_, server_id, *_), place in self._places.items() if place.prepared_at > message.read_at
        } - current.keys()
        for (_, server_id, *_), place in self._places.items():
            is_listed = server_id in current or (message.is_complete and server_id not in created_later)
            if is_listed and place.definition != current.get(server_id):
                self._obsolete[server_id, place.definition] = None
                self._obsolete.move_to_end((server_id, place.definition))
        while len(self._obsolete) > _MAX_OBSOLETE:
            self._obsolete.popitem(last=False)
        for server in list(self._servers.values()):
            if self._is_obsolete(server.name, server.definition):
                server.stopped = True
                server.close("server_ended")

    def _require_current(self, question: Prepare) -> None:
        if self._is_obsolete(question.server, question.definition):
            raise ServerFailed("server_ended")

    def _is_obsolete(self, server_id: str, definition: str) -> bool:
        return (server_id, definition) in self._obsolete or (server_id, None) in self._obsolete

    def _place(self, key: _Key, question: Prepare) -> _Place:
        place = self._places.setdefault(key, _Place(question.definition))
        place.prepared_at = time.monotonic()
        if place.definition != question.definition:
            # The same values were sealed again.
            place.definition = question.definition
            if place.server is not None:
                place.server.definition = question.definition
        self._places.move_to_end(key)
        if len(self._places) > _MAX_PLACES:
            for old, other in self._places.items():
                is_starting = other.starting is not None and not other.starting.done()
                if other is not place and other.server is None and not is_starting:
                    del self._places[old]
                    break
        return place

    async def _start(self, place: _Place, command: Command, question: Prepare) -> ServerProcess:
        await self._make_room(question.organization)
        self._require_current(question)

        def on_end(server: ServerProcess) -> None:
            self._ended(place, server)

        number = next(self._numbers)
        server = ServerProcess(
            number,
            question.organization,
            question.server,
            definition=question.definition,
            command=command,
            values=question.environment,
            on_end=on_end,
            sweep=self._kill_strangers,
        )
        self._servers[number] = server
        try:
            await server.start(self._root)
        except Exception as error:
            # Usually the system has no free process, thread, descriptor or memory.
            fields = {"organization": server.organization, "server": server.name, "error": type(error).__name__}
            log.error("mcp_stdio.not_started", **fields)  # noqa: TRY400 - the error may quote values of variables
            raise ServerFailed("process_failed") from None
        if number in self._servers:
            place.server = server
        place.starting = None
        return server

    async def _make_room(self, organization: str) -> None:
        """Wait until the organization may start a server. Its own idle servers are ended, but not those of others.
        Raises `ServerFailed`."""
        limits = self._commands
        while True:
            own = [server for server in self._servers.values() if server.organization == organization]
            if len(own) < limits.max_processes_per_organization and len(self._servers) < limits.max_processes:
                return
            idle = [server for server in own if server.closed or server.is_idle(_MIN_IDLE_SECONDS)]
            if not idle:
                raise ServerFailed("too_many_processes")
            await min(idle, key=lambda server: server.used_at).stop()

    def _ended(self, place: _Place, server: ServerProcess) -> None:
        self._servers.pop(server.number, None)
        if place.server is server:
            place.server = None
        now = time.monotonic()
        has_run = server.stopped or now - server.started_at >= MIN_UPTIME_SECONDS
        if has_run and not server.failed_handshake:
            place.failures = 0
        else:
            place.failures += 1
            if place.failures > 1:
                backoff = _FIRST_BACKOFF_SECONDS * 2.0 ** min(place.failures - 2, 10)
                place.not_before = now + min(backoff, _MAX_BACKOFF_SECONDS)

    def _kill_strangers(self) -> None:
        """Kill processes whose launcher was killed. The system makes them children of this process."""
        known = {server.pid for server in self._servers.values()}
        if None in known:
            # A launcher whose id is not known yet must not be killed. This is called again soon.
            return
        try:
            strangers = _children() - known
        except OSError:
            # The system has no free descriptor.
            return
        for pid in strangers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
            self._kill_strangers()
            for server in list(self._servers.values()):
                if not server.closed and server.is_idle(server.command.idle_seconds):
                    task = asyncio.create_task(server.stop(), name="end stdio server")
                    self._ending.add(task)
                    task.add_done_callback(self._ending.discard)


def _children() -> set[int]:
    """Return the ids of this process's children."""
    children = set[int]()
    for task in Path("/proc/self/task").iterdir():
        # A thread can end after it was listed. Another thread then becomes the parent of its children.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children.update(map(int, (task / "children").read_text().split()))
    return children


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
