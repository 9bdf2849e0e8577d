"""Measures the parts of a request in the gateway, for administrators who request the times (`X-Gateway-Timing`)."""

from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Final, TypeVar

from gatehouse.engine.exchange import Identified
from gatehouse.foundation.identity import CallerKind, Role

#: a step: its check, and the part to which its time is added (`pipeline.Step`)
S = TypeVar("S", bound=tuple[Any, str])
T = TypeVar("T")

#: Request header that requests the times, and response header that contains them.
HEADER: Final = "X-Gateway-Timing"
_REQUEST_HEADER: Final = HEADER.lower()


def milliseconds(seconds: float) -> float:
    """Convert seconds to milliseconds, rounded to microseconds. `round` would take three times as long."""
    return int(seconds * 1_000_000 + 0.5) / 1000


class Timing:
    """The time of each part. A part begins when the previous part ends. Parts are in the order in which they first
    ended."""

    __slots__ = ("_last", "_now", "_spent", "_started")

    def __init__(self, now: Callable[[], float], started: float, part: str) -> None:
        """Begin with the name of the part that ends now."""
        self._now = now
        self._started = self._last = started
        self._spent: dict[str, float] = {}
        self.end(part)

    def end(self, name: str) -> None:
        """End the part `name` now."""
        now = self._now()
        self._spent[name] = self._spent.get(name, 0.0) + now - self._last
        self._last = now

    def steps(self, steps: Iterable[S]) -> Generator[S, None, None]:
        """Yield the steps. The part of a step ends when the next step is requested."""
        for step in steps:
            yield step
            self.end(step[1])

    async def _timed(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        result = await work
        self.end(name)
        return result

    def header(self, last_part: str | None = None) -> str:
        """Return the times in milliseconds, in the format of `Server-Timing`. `total` is the time since the request
        arrived. If `last_part` is set, this part ends now."""
        if last_part is not None:
            self.end(last_part)
        parts = [*self._spent.items(), ("total", self._last - self._started)]
        return ", ".join(f"{name};dur={seconds * 1000:.3f}" for name, seconds in parts)


def timed(timing: Timing | None, name: str, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return `work` as a step whose time is the part `name`. Without a measurement, it is `work` itself."""
    return work if timing is None else timing._timed(name, work)


def is_requested(x: Identified) -> bool:
    """Return whether times are measured. They are measured only for administrators, because times reveal something
    about the findings in a text."""
    return (
        _REQUEST_HEADER in x.received.headers
        and x.caller.role is Role.ADMIN
        and x.caller.kind is not CallerKind.OAUTH_CLIENT
    )
