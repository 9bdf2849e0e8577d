"""The detection process. It runs the models, and starts the processes that read files. Any number of clients send
requests over a Unix socket."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import msgspec
import structlog

from gatehouse.detection.documents.readers import Readers, ReaderUnavailable
from gatehouse.detection.service import wire
from gatehouse.detection.service.guard import ProcessGuard
from gatehouse.detection.service.tiers import Failure, TierJob, TierModels, Tiers, models
from gatehouse.foundation import log as logs
from gatehouse.foundation.processes import frames
from gatehouse.foundation.processes.children import die_with_parent
from gatehouse.foundation.settings import Settings

log = structlog.get_logger(__name__)

#: Running work by request number. When work is done and its tier or task no longer refers to it, its entry disappears.
RunningWork: TypeAlias = WeakValueDictionary[int, TierJob[Any] | asyncio.Task[None]]
#: Time after which a batch is treated as hung. The time is longer if `_HUNG_BUDGETS` time budgets are longer.
HUNG_SECONDS: Final = 10.0
#: Number of time budgets of a request after which a batch is treated as hung.
_HUNG_BUDGETS: Final = 10


def run() -> None:
    """Serve until the process is killed. SIGTERM ends the process at once, because it has nothing to save."""
    # SIGKILL also ends a process that is stopped or hangs.
    die_with_parent(signal.SIGKILL)
    # Ctrl-C is sent to all processes of a terminal. Gateways that are draining still need this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = Settings.from_environment()
    logs.configure(settings.log_level)
    serve(settings, models(settings))


def serve(settings: Settings, load: TierModels, *, hung_seconds: float = HUNG_SECONDS) -> None:
    """Serve. Blocks until the process ends. The process ends if a model hangs or memory is exhausted."""
    guard = ProcessGuard(settings.detection_memory_bytes)
    guard.limit_memory()
    budget = settings.dlp_tier_timeout_ms / 1000
    hung_after = max(hung_seconds, _HUNG_BUDGETS * budget)
    tiers = Tiers(load, queue=settings.detection_queue, hung_after=hung_after, watch=guard)
    asyncio.run(_Service(tiers).serve(settings.gatehouse_home / wire.SOCKET))


class _Service:
    def __init__(self, tiers: Tiers) -> None:
        self._tiers = tiers
        self._readers = Readers()
        #: tasks that read files
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, path: Path) -> None:
        server = await asyncio.start_unix_server(self._answer, sock=frames.private_listener(path))
        await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        #: work in progress, by the number of its request
        running: RunningWork = WeakValueDictionary()

        def send(frame: bytes) -> None:
            if not writer.is_closing():
                writer.write(frame)

        def send_reply(reply: wire.Reply) -> None:
            """Send a reply. May be called from any thread."""
            try:
                frame = wire.framed(reply)
            except frames.TooLong:
                frame = wire.framed(wire.RequestFailed(reply.number, "crashed"))
            loop.call_soon_threadsafe(send, frame)

        try:
            while (data := await frames.read(reader)) is not None:
                self._take(wire.question.decode(data), send_reply, running)
        except (msgspec.DecodeError, frames.TooLong) as error:
            log.error("detection.bad_message", error=type(error).__name__)  # noqa: TRY400 - the error may quote text
        finally:
            writer.close()
            for work in list(running.values()):
                work.cancel()

    def _take(self, question: wire.Question, send_reply: Callable[[wire.Reply], None], running: RunningWork) -> None:
        number = question.number
        if isinstance(question, wire.AskEntities):
            reply = _sender(wire.Entities, number, send_reply)
            running[number] = job = TierJob[Any](question.texts, question.labels, question.deadline, reply)
            self._tiers.entities.submit(job)
        elif isinstance(question, wire.AskSemantic):
            reply = _sender(wire.Semantic, number, send_reply)
            running[number] = job = TierJob[Any](question.texts, question.labels, question.deadline, reply)
            self._tiers.semantic.submit(job)
        elif isinstance(question, wire.AskDocument):
            running[number] = task = asyncio.create_task(self._read(question, send_reply))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif isinstance(question, wire.Cancel):
            if (work := running.get(number)) is not None:
                work.cancel()
        elif isinstance(question, wire.Load):
            (self._tiers.entities if question.tier == "ner" else self._tiers.semantic).load()
        else:
            send_reply(wire.States(question.number, self._tiers.states()))

    async def _read(self, question: wire.AskDocument, send_reply: Callable[[wire.Reply], None]) -> None:
        try:
            reading = await self._readers.read(
                question.data, declared_as_text=question.declared_as_text, deadline=question.deadline
            )
        except ReaderUnavailable as error:
            send_reply(wire.RequestFailed(question.number, error.reason))
        else:
            send_reply(wire.Document(question.number, reading))


def _sender(
    reply: type[wire.Entities | wire.Semantic], number: int, send_reply: Callable[[wire.Reply], None]
) -> Callable[[dict[int, Any] | Failure], None]:
    def send(result: dict[int, Any] | Failure) -> None:
        send_reply(wire.RequestFailed(number, result) if isinstance(result, str) else reply(number, result))

    return send
