"""Where a request's time went in the gateway, for an administrator who asks (`X-Gateway-Timing`)."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gatehouse.engine.exchange import Identified
from gatehouse.foundation.identity import CallerKind, Role

T = TypeVar("T")

#: Asks for it in a request, and tells it in the answer.
HEADER: Final = "X-Gateway-Timing"
_ASKED: Final = HEADER.lower()


def milliseconds(seconds: float) -> float:
    """To the microsecond. `round` would take three times as long."""
    return int(seconds * 1_000_000 + 0.5) / 1000


class Timing:
    """Each part's time since the part before it ended, in the order in which they first came."""

    __slots__ = ("_last", "_now", "_spent", "_started")

    def __init__(self, now: Callable[[], float], started: float) -> None:
        self._now = now
        self._started = self._last = started
        self._spent: dict[str, float] = {}

    def part(self, name: str) -> None:
        """It ends now."""
        now = self._now()
        self._spent[name] = self._spent.get(name, 0.0) + now - self._last
        self._last = now

    def header(self) -> str:
        """As `Server-Timing` is written, in milliseconds; `total` is since the request's arrival."""
        parts = [*self._spent.items(), ("total", self._last - self._started)]
        return ", ".join(f"{name};dur={seconds * 1000:.3f}" for name, seconds in parts)


def timed(timing: Timing | None, part: str, work: Awaitable[T]) -> Awaitable[T]:
    """`work`, whose time is added to a part where times are measured."""
    return work if timing is None else _timed(timing, part, work)


async def _timed(timing: Timing, part: str, work: Awaitable[T]) -> T:
    result = await work
    timing.part(part)
    return result


def asked_for(x: Identified) -> bool:
    """Only those who administer the organization are told: times say something of what is found in a text."""
    return _ASKED in x.received.headers and x.caller.role is Role.ADMIN and x.caller.kind is not CallerKind.OAUTH_CLIENT
