"""How fast models answer: the median of the last five minutes, by catalog entry, of all workers together.

A worker notes what it sees, hands it on as reports, and takes those of the others (`report`, `take`); the host carries
them. What the request path reads is a plain mapping, made anew by `settle` every few seconds, never in a request.

Measured is the time from an attempt's beginning until its answer is there: all of it, or a stream's first event. The
two say different things, so they are kept apart, and a request is compared with its like. Times are counted in buckets
that are ten percent wide, so a median is off by five percent at most.
"""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock

#: Seconds that a time counts.
WINDOW: Final = 300.0
#: Seconds whose times leave the window together.
_SLOT: Final = 15.0
#: Seconds for which the last median of a model that nobody has called since is remembered.
_REMEMBERED: Final = 3600.0
#: Seconds after which a model that has no median may be tried again.
_TRY_AGAIN: Final = 60.0
#: Models that are kept: those that answered last.
_MOST: Final = 20_000
_WIDTH: Final = math.log(1.1)
_MOST_BUCKETS: Final = 160

_Key: TypeAlias = tuple[UUID, bool]


class Report(msgspec.Struct, array_like=True):
    """What one worker has seen of one model: how many times in each bucket."""

    model_id: UUID
    stream: bool
    counts: dict[int, int]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(list[Report])


class _Window:
    """One model's slots, oldest first: (number of the slot, its counts)."""

    __slots__ = ("changed", "last", "slots")

    def __init__(self) -> None:
        self.slots: deque[tuple[int, Counter[int]]] = deque()
        self.last = 0.0
        self.changed = True

    def add(self, slot: int, counts: Mapping[int, int]) -> None:
        for number, held in reversed(self.slots):
            if number == slot:
                held.update(counts)
                break
        else:
            self.slots.append((slot, Counter(counts)))
        self.changed = True

    def forget(self, oldest: int) -> None:
        while self.slots and self.slots[0][0] < oldest:
            self.slots.popleft()
            self.changed = True

    def median(self) -> float:
        total: Counter[int] = Counter()
        for _, counts in self.slots:
            total.update(counts)
        half, seen = total.total() / 2, 0
        for bucket in sorted(total):
            seen += total[bucket]
            if seen >= half:
                return _middle(bucket)
        raise AssertionError("a window without times has no median")


class Latencies:
    """One worker's. Nothing here waits; everything is bounded."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._windows: OrderedDict[_Key, _Window] = OrderedDict()
        #: by whether it was a stream, and by the model's id as a number, which is found at a quarter of the cost
        self._unreported: dict[bool, dict[int, dict[int, int]]] = {False: {}, True: {}}
        self._medians: dict[bool, dict[int, float]] = {False: {}, True: {}}
        self._tried: dict[UUID, float] = {}
        self._changes = 0

    def medians(self, *, stream: bool) -> Mapping[int, float]:
        """Milliseconds by `Option.key`, the catalog entry's id as a number. A model that nobody has called for an hour
        is not in it."""
        return self._medians[stream]

    def state(self, *, stream: bool) -> tuple[int, bool]:
        """Another one whenever the medians are others: for whoever keeps what was worked out of them."""
        return self._changes, stream

    def answered(self, model_id: UUID, milliseconds: float, *, stream: bool) -> None:
        """A provider has answered well."""
        unreported, key = self._unreported[stream], model_id.int
        seen = unreported.get(key)
        if seen is None:
            if len(unreported) >= _MOST:
                return
            seen = unreported[key] = {}
        bucket = _bucket(milliseconds)
        seen[bucket] = seen.get(bucket, 0) + 1
        # The first one counts at once: whoever comes next has something to go by.
        medians = self._medians[stream]
        if key not in medians:
            medians[key] = milliseconds
            self._changes += 1

    def may_try(self, model_id: UUID) -> bool:
        """Whether a request may go to a model without a median, to find out how fast it is: one a minute, so that a
        slow model slows no more than that."""
        now = self._clock.monotonic()
        if now - self._tried.get(model_id, -_TRY_AGAIN) < _TRY_AGAIN:
            return False
        if len(self._tried) >= _MOST:
            self._tried.clear()
        self._tried[model_id] = now
        return True

    def report(self) -> bytes | None:
        """What was seen here since the last report, for the others. It counts here too from now on."""
        seen, self._unreported = self._unreported, {False: {}, True: {}}
        reports = [
            Report(UUID(int=key), stream, counts) for stream, models in seen.items() for key, counts in models.items()
        ]
        if not reports:
            return None
        self._add(reports, 0.0)
        return _encode(reports)

    def take(self, body: bytes, age: float) -> None:
        """Another worker's report; `age` is how many seconds ago it was made. Raises `msgspec.MsgspecError`."""
        if age < WINDOW:
            self._add(_decoder.decode(body), age)

    def settle(self) -> None:
        """Makes the medians anew."""
        self._changes += 1
        now = self._clock.monotonic()
        oldest = _slot(now - WINDOW) + 1
        for key, window in list(self._windows.items()):
            window.forget(oldest)
            if now - window.last > _REMEMBERED:
                self._drop(key)
            elif window.slots and window.changed:
                self._medians[key[1]][key[0].int] = window.median()
            window.changed = False
        while len(self._windows) > _MOST:
            self._drop(next(iter(self._windows)))

    def _add(self, reports: list[Report], age: float) -> None:
        now = self._clock.monotonic()
        slot = _slot(now - age)
        for report in reports:
            key = (report.model_id, report.stream)
            window = self._windows.setdefault(key, _Window())
            self._windows.move_to_end(key)
            window.last = now
            window.add(slot, report.counts)

    def _drop(self, key: _Key) -> None:
        del self._windows[key]
        self._medians[key[1]].pop(key[0].int, None)


def _slot(moment: float) -> int:
    return math.floor(moment / _SLOT)


def _bucket(milliseconds: float) -> int:
    return min(_MOST_BUCKETS, int(math.log(max(milliseconds, 1.0)) / _WIDTH))


def _middle(bucket: int) -> float:
    return round(math.exp((bucket + 0.5) * _WIDTH), 1)
