"""Counts requests in this process: without Redis, or while Redis is unavailable."""

from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters import BUCKET_SECONDS, WINDOW_SECONDS, Claim, RateDecision, decision

_MICROSECONDS: Final = 1_000_000


class _Window:
    """The recent admissions of one key in buckets, oldest first. Times are whole microseconds, so that sums are
    exact."""

    __slots__ = ("counts", "ends", "opened", "used")

    def __init__(self) -> None:
        #: time of the last admission of each bucket
        self.ends: list[int] = []
        self.counts: list[int] = []
        #: time of the first admission of the newest bucket
        self.opened = 0
        self.used = 0

    def drop_expired(self, horizon: int) -> None:
        """Drops the buckets that ended at `horizon` or before."""
        ends = self.ends
        if ends and ends[0] <= horizon:
            expired = bisect_right(ends, horizon)
            self.used -= sum(self.counts[:expired])
            del ends[:expired], self.counts[:expired]

    def add(self, now: int, span: int) -> None:
        if self.ends and now - self.opened < span:
            self.ends[-1] = now
            self.counts[-1] += 1
        else:
            self.ends.append(now)
            self.counts.append(1)
            self.opened = now
        self.used += 1

    def freeing_bucket_end(self, limit: int) -> int:
        """Returns the end of the bucket whose expiry brings the full window below `limit`."""
        used = self.used
        for end, count in zip(self.ends, self.counts, strict=True):
            used -= count
            if used < limit:
                return end
        return self.ends[-1]


class MemoryCounters:
    """Implements `engine.ports.Counters`. Counts are exact under concurrency, because no method awaits anything while
    it counts.

    Keys are in the order of their last admission, so expired keys are at the front. Each call drops up to two expired
    keys; `purge` drops all of them. Above `max_keys` live keys, the key whose last admission is the oldest is dropped
    with its count, so that memory stays bounded. A client with more than `max_keys` addresses gains a few requests.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, max_keys: int = 50_000, window: float = WINDOW_SECONDS) -> None:
        self._clock = clock
        self._max_keys = max_keys
        # One microsecond less than the window, so that a client that waits for `retry_after` is admitted although the
        # clock is rounded.
        self._window = round(window * _MICROSECONDS) - 1
        self._span = round(min(BUCKET_SECONDS, window / 600) * _MICROSECONDS)
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    async def take(self, key: str, limit: int, *, own_limit: int | None = None) -> RateDecision:
        """Counts one request of `key` if fewer than `own_limit`, by default `limit`, were admitted in the last 60
        seconds."""
        if own_limit is not None:
            limit = own_limit
            if limit == 0:
                return self._none_admitted(0)
        # The same as `take_now` for one claim, but faster: most requests count against one limit only.
        now = int(self._clock.monotonic() * _MICROSECONDS)
        self._drop_expired(now, 2)
        window = self._windows.get(key)
        if window is not None:
            window.drop_expired(now - self._window)
            if window.used >= limit:
                return self._decision(0, limit, window, window.freeing_bucket_end(limit), now, allowed=False)
        window = self._admit(key, now)
        return self._decision(0, limit, window, window.ends[0], now, allowed=True)

    async def take_all(self, *claims: Claim) -> RateDecision:
        """Counts one request against every claim, or against none if one of them is full. Needs at least one claim."""
        return self.take_now(*claims)

    def take_now(self, *claims: Claim) -> RateDecision:
        # The monotonic clock: a correction of the wall clock must not change limits.
        now = int(self._clock.monotonic() * _MICROSECONDS)
        self._drop_expired(now, 2)
        tightest, least = 0, None
        windows = self._windows
        for index, (key, limit) in enumerate(claims):
            if limit == 0:
                return self._none_admitted(index)
            window = windows.get(key)
            used = 0
            if window is not None:
                window.drop_expired(now - self._window)
                used = window.used
                if used >= limit:
                    return self._decision(index, limit, window, window.freeing_bucket_end(limit), now, allowed=False)
            if least is None or limit - used < least:
                tightest, least = index, limit - used
        window = [self._admit(key, now) for key, _ in claims][tightest]
        return self._decision(tightest, claims[tightest][1], window, window.ends[0], now, allowed=True)

    def purge(self) -> None:
        """Drops all expired keys. The host calls it every 60 seconds."""
        self._drop_expired(int(self._clock.monotonic() * _MICROSECONDS), len(self._windows))

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

    def _none_admitted(self, claim: int) -> RateDecision:
        """Returns the decision for a limit of 0: this process has no part of the limit."""
        wait = self._window / _MICROSECONDS
        return decision(allowed=False, claim=claim, limit=0, used=0, wait=wait, now=self._clock.now())

    def _decision(
        self, claim: int, limit: int, window: _Window, bucket_end: int, now: int, *, allowed: bool
    ) -> RateDecision:
        wait = (bucket_end + self._window - now) / _MICROSECONDS
        return decision(allowed=allowed, claim=claim, limit=limit, used=window.used, wait=wait, now=self._clock.now())
