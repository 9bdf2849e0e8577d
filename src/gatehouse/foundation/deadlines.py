"""Timeouts of one common duration, with one timer for all of them."""

import asyncio
from types import TracebackType


class Deadlines:
    """Timeouts of `seconds`. `with deadlines.one() as wait:` raises `TimeoutError` like `asyncio.timeout`, at a quarter
    of its cost.

    Waits of equal length expire in the order in which they began, so one timer for the oldest wait is enough.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        #: deadline of each wait in the loop's time, oldest first
        self._waits: dict[Wait, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def one(self) -> "Wait":
        return Wait(self)

    def add(self, wait: "Wait", loop: asyncio.AbstractEventLoop) -> None:
        self._waits[wait] = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_later(self.seconds, self._expire_due)

    def remove(self, wait: "Wait") -> None:
        self._waits.pop(wait, None)

    def _expire_due(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = None
        while self._waits:
            wait, due = next(iter(self._waits.items()))
            if due > now:
                self._timer = loop.call_at(due, self._expire_due)
                return
            del self._waits[wait]
            wait.expire()


class Wait:
    """One wait of the task that entered it. If `expired` is true, the wait has lasted too long, and a `TimeoutError` in
    its block comes from this wait."""

    __slots__ = ("_cancelling", "_deadlines", "_task", "expired")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self.expired = False

    def __enter__(self) -> "Wait":
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._deadlines.add(self, loop)
        return self

    def expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.remove(self)
        # If the task was also cancelled by something else, the cancellation continues.
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
