"""The end of a request: what it cost, what was set aside for it, and its one record."""

import asyncio
import contextlib
from collections.abc import Awaitable
from decimal import Decimal
from typing import Final

from gatehouse.engine import pipeline
from gatehouse.engine.exchange import Answered
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply
from gatehouse.engine.routing.cost import cost
from gatehouse.engine.stages.record import Recorder
from gatehouse.engine.timing import milliseconds

_NOTHING: Final = Decimal(0)


class Settling:
    """One worker's. `finish` and `leave` are the two ways out; whichever comes first for a request is the only one
    that does anything, so that every exit may call either."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        #: settling for clients that have left; kept here so that it is not dropped half-way
        self._leaving: set[asyncio.Task[None]] = set()

    def price(self, reply: Reply, answered: Answered) -> None:
        answered.usage = reply.usage
        if answered.cache == "hit":
            # Also where the catalog has no price: it was paid when it was given first.
            answered.cost_usd, answered.cost_told = _NOTHING, "0"
        elif answered.usage is not None and answered.chosen is not None:
            answered.cost_usd = usd = cost(answered.usage, answered.chosen.model)
            answered.cost_told = None if usd is None else f"{usd:f}"

    async def finish(self, answered: Answered, recorder: Recorder) -> None:
        """Settles and records. Returns when the record survives this process. Raises `Unavailable` when the journal
        does not take it."""
        if not recorder.claim():
            return
        try:
            for settle in pipeline.AFTERWARDS:
                settle(answered, self._ports)
        finally:
            # Also for a client that leaves right now: the entry is queued at the call.
            written = recorder.finished(answered)
        await written

    def leave(self, answered: Answered, recorder: Recorder) -> None:
        """The same for a client that no longer waits: the entry is queued now, and nobody is cancelled. Never fails:
        the journal reports its own faults, and here is nobody to tell."""
        if not recorder.claim():
            return
        written: Awaitable[None] | None = None
        with contextlib.suppress(Exception):
            written = recorder.finished(answered)
        task = asyncio.create_task(self._settled(answered, written))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _settled(self, answered: Answered, written: Awaitable[None] | None) -> None:
        for settle in pipeline.AFTERWARDS:
            settle(answered, self._ports)
        if written is not None:
            with contextlib.suppress(Exception):
                await written

    def since(self, started: float) -> float:
        """Milliseconds."""
        return milliseconds(self._ports.clock.monotonic() - started)
