"""A bound on how long something may take, for things that all may take equally long."""

import asyncio
from types import TracebackType


class Deadlines:
    """`with deadlines.one() as wait:` raises `TimeoutError` after `seconds`, as `asyncio.timeout` does, at a quarter of
    its cost: waits of one length run out in the order in which they began, so that one timer watches the oldest."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        #: when each is over by the loop's time, the oldest first
        self._waits: dict[Wait, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def one(self) -> "Wait":
        return Wait(self)

    def began(self, wait: "Wait", loop: asyncio.AbstractEventLoop) -> None:
        self._waits[wait] = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_later(self.seconds, self._look)

    def ended(self, wait: "Wait") -> None:
        self._waits.pop(wait, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = None
        while self._waits:
            wait, due = next(iter(self._waits.items()))
            if due > now:
                self._timer = loop.call_at(due, self._look)
                return
            del self._waits[wait]
            wait.expire()


class Wait:
    """One, by the task that entered it. `expired`: its time is up, and the `TimeoutError` is this one's."""

    __slots__ = ("_among", "_cancelling", "_task", "expired")

    def __init__(self, among: Deadlines) -> None:
        self._among = among
        self.expired = False

    def __enter__(self) -> "Wait":
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._among.began(self, loop)
        return self

    def expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._among.ended(self)
        # Somebody else's cancellation at the same moment passes through.
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
