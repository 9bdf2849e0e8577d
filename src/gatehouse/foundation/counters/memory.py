"""Counting in this process: alone without Redis, and while Redis is away."""

from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters import BUCKET, WINDOW, Claim, Taken, told

_SECOND: Final = 1_000_000


class _Window:
    """What one key was admitted lately, in buckets, oldest first. Times are whole microseconds: sums are exact."""

    __slots__ = ("counts", "ends", "opened", "used")

    def __init__(self) -> None:
        #: by bucket, when its last request was admitted
        self.ends: list[int] = []
        self.counts: list[int] = []
        #: when the first request of the last bucket was admitted
        self.opened = 0
        self.used = 0

    def forget(self, horizon: int) -> None:
        """Drops the buckets that ended at `horizon` or before."""
        ends = self.ends
        if ends and ends[0] <= horizon:
            gone = bisect_right(ends, horizon)
            self.used -= sum(self.counts[:gone])
            del ends[:gone], self.counts[:gone]

    def add(self, now: int, span: int) -> None:
        if self.ends and now - self.opened < span:
            self.ends[-1] = now
            self.counts[-1] += 1
        else:
            self.ends.append(now)
            self.counts.append(1)
            self.opened = now
        self.used += 1

    def room_at(self, limit: int) -> int:
        """When the window, now full, will hold less than `limit`."""
        used = self.used
        for end, count in zip(self.ends, self.counts, strict=True):
            used -= count
            if used < limit:
                return end
        return self.ends[-1]


class MemoryCounters:
    """Shape of `engine.ports.Counters`. Exact under concurrency, because nothing in a take waits.

    Keys stand in the order of their last admission, so those that expired are always in front; each take drops two of
    them, `purge` drops all. With `max_keys` live keys the one that was admitted longest ago is forgotten, and with it
    its count: someone with that many addresses gains a few requests, where otherwise they would take the memory.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, max_keys: int = 50_000, window: float = WINDOW) -> None:
        self._clock = clock
        self._max_keys = max_keys
        # A microsecond less: who waits as long as told finds room, however the clock's fractions were rounded.
        self._window = round(window * _SECOND) - 1
        self._span = round(min(BUCKET, window / 600) * _SECOND)
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    async def take(self, key: str, limit: int) -> Taken:
        """Counts one request of `key`, if fewer than `limit` were admitted in the last 60 seconds."""
        # As `take_now`, without the lists of several claims: most requests count against one limit.
        now = int(self._clock.monotonic() * _SECOND)
        self._drop_expired(now, 2)
        window = self._windows.get(key)
        if window is not None:
            window.forget(now - self._window)
            if window.used >= limit:
                return self._told(0, limit, window, window.room_at(limit), now, allowed=False)
        window = self._admit(key, now)
        return self._told(0, limit, window, window.ends[0], now, allowed=True)

    async def take_all(self, *claims: Claim) -> Taken:
        """Counts one request against every claim, or against none if one has no room. At least one claim."""
        return self.take_now(*claims)

    def take_now(self, *claims: Claim) -> Taken:
        # The monotonic clock counts: a corrected wall clock must neither free nor block anyone.
        now = int(self._clock.monotonic() * _SECOND)
        self._drop_expired(now, 2)
        tightest, least = 0, None
        windows = self._windows
        for index, (key, limit) in enumerate(claims):
            window = windows.get(key)
            used = 0
            if window is not None:
                window.forget(now - self._window)
                used = window.used
                if used >= limit:
                    return self._told(index, limit, window, window.room_at(limit), now, allowed=False)
            if least is None or limit - used < least:
                tightest, least = index, limit - used
        window = [self._admit(key, now) for key, _ in claims][tightest]
        return self._told(tightest, claims[tightest][1], window, window.ends[0], now, allowed=True)

    def purge(self) -> None:
        """Drops every expired key, for a host to call each 60 seconds."""
        self._drop_expired(int(self._clock.monotonic() * _SECOND), len(self._windows))

    def _drop_expired(self, now: int, at_most: int) -> None:
        windows = self._windows
        horizon = now - self._window
        while windows and at_most:
            key = next(iter(windows))
            ends = windows[key].ends
            if ends and ends[-1] > horizon:
                return
            del windows[key]
            at_most -= 1

    def _admit(self, key: str, now: int) -> _Window:
        window = self._windows.get(key)
        if window is None:
            while len(self._windows) >= self._max_keys:
                self._windows.popitem(last=False)
            window = self._windows[key] = _Window()
        else:
            self._windows.move_to_end(key)
        window.add(now, self._span)
        return window

    def _told(self, claim: int, limit: int, window: _Window, frees: int, now: int, *, allowed: bool) -> Taken:
        wait = (frees + self._window - now) / _SECOND
        return told(allowed=allowed, claim=claim, limit=limit, used=window.used, wait=wait, now=self._clock.now())
