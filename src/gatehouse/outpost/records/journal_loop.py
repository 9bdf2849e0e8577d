"""The loop that sends the entries of the journal to a receiver, with retries."""

import asyncio
import contextlib
from typing import ClassVar, Final

from gatehouse.foundation.tasks import is_running
from gatehouse.outpost.records.positions import OutpostRecords

#: Seconds between two polls of a journal whose entries have all been sent.
_POLL_INTERVAL_SECONDS: Final = 0.5


class JournalLoop:
    """Sends entries from `start` to `stop`. Of all processes of a home, only one sends. Subclasses define the receiver,
    and how long to wait after a failure."""

    name: ClassVar[str]
    #: seconds between two batches of a backlog
    backlog_interval_seconds: ClassVar[float] = 0.0
    #: maximum time to send the last entries of the journal when the outpost ends
    shutdown_timeout_seconds: ClassVar[float]

    def __init__(self, records: OutpostRecords) -> None:
        self.records: Final = records
        self.stopping: Final = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def send_next(self) -> bool:
        """Sends one batch. Returns whether there may be more entries."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """Notes that `send_next` or the claim of the journal raised this error. An error never ends the loop."""
        raise NotImplementedError

    def retry_seconds(self, failures: int) -> float:
        """Returns the delay after this number of failures in a row."""
        raise NotImplementedError

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Sends the last entries of the journal, if the receiver accepts them immediately. Otherwise they are sent
        after the next start."""
        self.stopping.set()
        if self._task is not None:
            _, unfinished = await asyncio.wait([self._task], timeout=self.shutdown_timeout_seconds)
            for task in unfinished:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _claim(self) -> bool:
        """Returns whether this process sends the journal now."""
        try:
            return await asyncio.to_thread(self.records.claim)
        except OSError as error:
            self.failed(error)
            return False

    async def _run(self) -> None:
        while not await self._claim():
            if await self._wait_for_stop(_POLL_INTERVAL_SECONDS):
                return
        failures = 0
        while is_running():
            stopping = self.stopping.is_set()
            try:
                more, failures = await self.send_next(), 0
            except Exception as error:
                self.failed(error)
                more, failures = False, failures + 1
            if stopping and not more:
                return
            if failures:
                await self._wait_for_stop(self.retry_seconds(failures))
            else:
                await self._wait_for_stop(self.backlog_interval_seconds if more else _POLL_INTERVAL_SECONDS)

    async def _wait_for_stop(self, seconds: float) -> bool:
        """Waits up to `seconds`. Returns whether `stop` has been called."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)
        return self.stopping.is_set()
