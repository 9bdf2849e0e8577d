"""The client of the detection process. It connects again after the process has been restarted."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.detection.models import TierFailed, TierName
from gatehouse.detection.service import wire
from gatehouse.detection.service.detectors import Health, TierDetectors, TierRequest
from gatehouse.detection.service.tiers import TierState
from gatehouse.foundation.processes import frames

log = structlog.get_logger(__name__)

#: Seconds between two attempts to connect.
_RECONNECT_INTERVAL_SECONDS: Final = 0.05
#: Maximum time for which requests, within their budgets, wait for a process that cannot be reached. A restart takes
#: about a second.
_RESTART_SECONDS: Final = 5.0
#: Maximum time for which `loaded` waits for a process that cannot be reached.
_MAX_AWAY_SECONDS: Final = 10.0
#: Maximum unsent bytes, if the process does not read its messages.
_MAX_UNSENT_BYTES: Final = 16 * 1024**2
#: Timeout of a request for the states of the tiers.
_STATES_TIMEOUT_SECONDS: Final = 1.0


class DetectionClient(TierDetectors):
    """The client for one event loop. `start` and `stop` must be called in this event loop."""

    def __init__(
        self,
        home: Path,
        *,
        budget: float,
        queue: int,
        on_failure: Callable[[TierFailed], None] | None = None,
        begin: Callable[[], None] = lambda: None,
        begun: Callable[[], bool] = lambda: False,
    ) -> None:
        """`begin` is called when the process is first needed, so that the caller can start it. `begun` returns whether
        the process has been started for another client."""
        super().__init__(budget=budget, queue=queue, on_failure=on_failure)
        self._begin = begin
        self._begun = begun
        self._socket = home / wire.SOCKET
        self._numbers = count()
        self._requests: dict[int, TierRequest] = {}
        self._state_requests: dict[int, asyncio.Future[dict[TierName, TierState]]] = {}
        self._needed = asyncio.Event()
        self._connected = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        #: monotonic time at which the connection was lost; None before the first connection
        self._lost_at: float | None = None
        #: monotonic time at which the process was first needed
        self._needed_at = 0.0
        self._used: set[TierName] = set()

    async def start(self) -> None:
        """Start the background task that connects to the process once it is needed. Returns at once."""
        self._task = asyncio.create_task(self._stay_connected(), name="detection client")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def need(self, tier: TierName) -> bool:
        """Load the model of a tier that a rule needs, so that no request has to wait for the model. Return whether this
        is the first call for this tier."""
        if tier in self._used:
            return False
        self._used.add(tier)
        self.want()
        if self._writer is not None:
            _send(self._writer, wire.framed(wire.Load(next(self._numbers), tier)))
        return True

    async def loaded(self, timeout_seconds: float, tiers: Collection[TierName] | None = None) -> list[TierName]:
        """Wait until the models of `tiers` are loaded, and return the tiers whose models are not loaded. Without
        `tiers`, wait for all tiers that have been needed so far. The wait ends early if a model is unusable or the
        process cannot be reached for `_MAX_AWAY_SECONDS`."""
        deadline = time.monotonic() + timeout_seconds
        awaited: Collection[TierName] = self._used if tiers is None else tiers
        while awaited:
            states = await self._states()
            missing = sorted(tier for tier in awaited if states is None or states[tier].phase != "loaded")
            unusable = states is not None and all(states[tier].phase == "unusable" for tier in missing)
            if not missing or unusable or time.monotonic() >= deadline or self._away_for() > _MAX_AWAY_SECONDS:
                return missing
            await asyncio.sleep(_RECONNECT_INTERVAL_SECONDS)
        return []

    def want(self) -> None:
        """Record that the process is needed, and start it at the first call."""
        if not self._needed.is_set():
            self._needed_at = time.monotonic()
            self._needed.set()
            self._begin()

    async def _ask(self, tier: TierName, request: TierRequest, labels: Sequence[str], deadline: float) -> None:
        # The tier is recorded first, so that its model is loaded even if this request runs out of time.
        self._used.add(tier)
        number = next(self._numbers)
        await self._answered(
            tier,
            wire.AskEntities(number, deadline, request.texts, tuple(labels))
            if tier == "ner"
            else wire.AskSemantic(number, deadline, request.texts, tuple(labels)),
            request,
        )

    async def _read(self, data: bytes, *, declared_as_text: bool, deadline: float, request: TierRequest) -> None:
        question = wire.AskDocument(next(self._numbers), deadline, data, declared_as_text)
        await self._answered("documents", question, request)

    async def _answered(
        self, tier: str, question: wire.AskEntities | wire.AskSemantic | wire.AskDocument, request: TierRequest
    ) -> None:
        writer = await self._reached(tier)
        number = question.number
        try:
            frame = wire.framed(question)
        except frames.TooLong:
            raise TierFailed(tier, "overloaded") from None
        if writer.transport.get_write_buffer_size() > _MAX_UNSENT_BYTES:
            raise TierFailed(tier, "overloaded")
        self._requests[number] = request
        try:
            if not _send(writer, frame):
                raise TierFailed(tier, "crashed")
            if failure := await request.over:
                raise TierFailed(tier, failure)
        except asyncio.CancelledError:
            # The caller has disconnected, or the time budget of the request is used up.
            _send(writer, wire.framed(wire.Cancel(number)))
            raise
        finally:
            del self._requests[number]

    async def _states(self) -> dict[TierName, TierState] | None:
        if self._begun():
            # Another client has started the process. Connect to it, in order to report its health.
            self.want()
        if self._writer is None:
            return None
        number = next(self._numbers)
        future: asyncio.Future[dict[TierName, TierState]] = asyncio.get_running_loop().create_future()
        self._state_requests[number] = future
        try:
            if not _send(self._writer, wire.framed(wire.AskStates(number))):
                return None
            async with asyncio.timeout(_STATES_TIMEOUT_SECONDS):
                return await future
        except TimeoutError:
            return None
        finally:
            del self._state_requests[number]

    def _unreachable(self) -> Health:
        if self._writer is not None:
            return Health("degraded", "does not answer")
        if not self._needed.is_set():
            return Health("healthy", "idle")
        return Health("unknown", "not running") if self._lost_at is None else Health("degraded", "not running")

    def _away_for(self) -> float:
        """Return the number of seconds without a connection, or 0 if connected."""
        if self._writer is not None:
            return 0.0
        return time.monotonic() - (self._needed_at if self._lost_at is None else self._lost_at)

    async def _reached(self, tier: str) -> asyncio.StreamWriter:
        self.want()
        while self._writer is None:
            if self._away_for() > _RESTART_SECONDS:
                raise TierFailed(tier, "unavailable")
            await self._connected.wait()
        return self._writer

    async def _stay_connected(self) -> None:
        await self._needed.wait()
        while True:
            try:
                with frames.reachable(self._socket) as address:
                    reader, writer = await asyncio.open_unix_connection(address)
                try:
                    await self._use(reader, writer)
                finally:
                    writer.close()
            except (OSError, RuntimeError):
                # The process cannot be reached, or the connection was lost. uvloop raises RuntimeError for a lost
                # connection.
                pass
            except (msgspec.DecodeError, frames.TooLong):
                log.exception("detection.bad_message")
            await asyncio.sleep(_RECONNECT_INTERVAL_SECONDS)

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Use a connection until it ends."""
        writer.write(wire.framed(wire.AskStates(next(self._numbers))))
        # A process that is about to end may still accept connections.
        if await frames.read(reader) is None:
            return
        # A restarted process may use other models, so cached answers may be wrong.
        self._cache.clear()
        for tier in self._used:
            # Load the models again after a restart, so that the next request does not have to wait for them.
            writer.write(wire.framed(wire.Load(next(self._numbers), tier)))
        self._writer = writer
        self._connected.set()
        try:
            while (data := await frames.read(reader)) is not None:
                self._take(wire.reply.decode(data))
        finally:
            self._writer = None
            self._connected.clear()
            self._lost_at = time.monotonic()
            for request in self._requests.values():
                request.complete("crashed")
        log.warning("detection.lost")

    def _take(self, reply: wire.Reply) -> None:
        """Pass a reply to its request. A reply to a request that has ended is dropped."""
        if isinstance(reply, wire.States):
            future = self._state_requests.get(reply.number)
            if future is not None and not future.done():
                future.set_result(reply.tiers)
        elif (request := self._requests.get(reply.number)) is not None:
            if isinstance(reply, wire.RequestFailed):
                request.complete(reply.failure)
            else:
                request.complete({0: reply.reading} if isinstance(reply, wire.Document) else reply.answers)


def _send(writer: asyncio.StreamWriter, frame: bytes) -> bool:
    """Write a frame. Return whether the connection accepted it.

    uvloop raises RuntimeError if the connection was lost but the reader has not noticed yet.
    """
    try:
        writer.write(frame)
    except (OSError, RuntimeError):
        return False
    return True
