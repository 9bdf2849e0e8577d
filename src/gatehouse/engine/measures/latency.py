"""Latency of models: the median of the last five minutes over all workers, by catalog entry.

A worker counts its own latencies, exports them as reports (`report`), and imports the reports of the other workers
(`take`). The host transports the reports. The request path reads a plain mapping. `settle` recomputes this mapping
every few seconds, and never during a request.

The latency of a call without a stream is the time from the start of an attempt until the whole answer has arrived; for
a stream, until the first event has arrived. The two kinds are not comparable, so they are kept apart, and a request is
compared with requests of its own kind. Latencies are counted in buckets that are ten percent wide, so a median is off
by at most five percent.
"""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock

#: Age at which a latency no longer counts.
WINDOW_SECONDS: Final = 300.0
#: Latencies leave the window in slots of this length.
_SLOT_SECONDS: Final = 15.0
#: Time for which the last median of a model is kept after the model's last call.
_MEDIAN_LIFETIME_SECONDS: Final = 3600.0
#: Interval at which a model without a median may be tried.
_TRIAL_INTERVAL_SECONDS: Final = 60.0
#: Maximum number of models that are kept. Those that answered last are kept.
_MAX_MODELS: Final = 20_000
_LOG_BUCKET_WIDTH: Final = math.log(1.1)
_MAX_BUCKET: Final = 160

_Key: TypeAlias = tuple[UUID, bool]


class LatencyReport(msgspec.Struct, array_like=True):
    """One worker's latencies of one model. `counts` has the number of latencies in each bucket."""

    model_id: UUID
    stream: bool
    counts: dict[int, int]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(list[LatencyReport])


class _LatencyWindow:
    """The latencies of one model as pairs of a slot number and its counts, oldest first."""

    __slots__ = ("changed", "last", "slots")

    def __init__(self) -> None:
        self.slots: deque[tuple[int, Counter[int]]] = deque()
        self.last = 0.0
        self.changed = True

    def add(self, slot: int, counts: Mapping[int, int]) -> None:
        for number, slot_counts in reversed(self.slots):
            if number == slot:
                slot_counts.update(counts)
                break
        else:
            self.slots.append((slot, Counter(counts)))
        self.changed = True

    def drop_before(self, oldest: int) -> None:
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
    """The latencies that one worker has measured, and those that it has received from other workers. No method blocks,
    and all state is bounded."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._windows: OrderedDict[_Key, _LatencyWindow] = OrderedDict()
        #: Counts by kind (stream or not), then by the model's id as an integer, then by bucket. Looking up an integer
        #: costs a quarter of looking up a UUID.
        self._unreported: dict[bool, dict[int, dict[int, int]]] = {False: {}, True: {}}
        self._medians: dict[bool, dict[int, float]] = {False: {}, True: {}}
        self._tried: dict[UUID, float] = {}
        self._changes = 0

    def medians(self, *, stream: bool) -> Mapping[int, float]:
        """Return the medians in milliseconds by `Option.key`, which is the id of the catalog entry as an integer. A
        model without a call in the last hour has no median."""
        return self._medians[stream]

    def state(self, *, stream: bool) -> tuple[int, bool]:
        """Return a value that differs whenever the medians have changed. It serves as a key for caches of derived
        values."""
        return self._changes, stream

    def answered(self, model_id: UUID, milliseconds: float, *, stream: bool) -> None:
        """Count the latency of a successful answer."""
        unreported, key = self._unreported[stream], model_id.int
        counts = unreported.get(key)
        if counts is None:
            if len(unreported) >= _MAX_MODELS:
                return
            counts = unreported[key] = {}
        bucket = _bucket(milliseconds)
        counts[bucket] = counts.get(bucket, 0) + 1
        # The first latency is used at once as the median, so that the next request has a value.
        medians = self._medians[stream]
        if key not in medians:
            medians[key] = milliseconds
            self._changes += 1

    def may_try(self, model_id: UUID) -> bool:
        """Return whether a request may go to a model without a median, to measure its latency. One request a minute
        may, so that a slow model delays few requests."""
        now = self._clock.monotonic()
        if now - self._tried.get(model_id, -_TRIAL_INTERVAL_SECONDS) < _TRIAL_INTERVAL_SECONDS:
            return False
        if len(self._tried) >= _MAX_MODELS:
            self._tried.clear()
        self._tried[model_id] = now
        return True

    def report(self) -> bytes | None:
        """Return this worker's latencies since the last report, for the other workers, and add them to this worker's
        windows. Returns None if there are none."""
        unreported, self._unreported = self._unreported, {False: {}, True: {}}
        reports = [
            LatencyReport(UUID(int=key), stream, counts)
            for stream, models in unreported.items()
            for key, counts in models.items()
        ]
        if not reports:
            return None
        self._add(reports, 0.0)
        return _encode(reports)

    def take(self, body: bytes, age: float) -> None:
        """Add a report of another worker, which is `age` seconds old. Raises `msgspec.MsgspecError` if the report
        cannot be decoded."""
        if age < WINDOW_SECONDS:
            self._add(_decoder.decode(body), age)

    def settle(self) -> None:
        """Recompute the medians."""
        self._changes += 1
        now = self._clock.monotonic()
        oldest = _slot(now - WINDOW_SECONDS) + 1
        for key, window in list(self._windows.items()):
            window.drop_before(oldest)
            if now - window.last > _MEDIAN_LIFETIME_SECONDS:
                self._drop(key)
            elif window.slots and window.changed:
                self._medians[key[1]][key[0].int] = window.median()
            window.changed = False
        while len(self._windows) > _MAX_MODELS:
            self._drop(next(iter(self._windows)))

    def _add(self, reports: list[LatencyReport], age: float) -> None:
        now = self._clock.monotonic()
        slot = _slot(now - age)
        for report in reports:
            key = (report.model_id, report.stream)
            window = self._windows.setdefault(key, _LatencyWindow())
            self._windows.move_to_end(key)
            window.last = now
            window.add(slot, report.counts)

    def _drop(self, key: _Key) -> None:
        del self._windows[key]
        self._medians[key[1]].pop(key[0].int, None)


def _slot(moment: float) -> int:
    return math.floor(moment / _SLOT_SECONDS)


def _bucket(milliseconds: float) -> int:
    return min(_MAX_BUCKET, int(math.log(max(milliseconds, 1.0)) / _LOG_BUCKET_WIDTH))


def _middle(bucket: int) -> float:
    return round(math.exp((bucket + 0.5) * _LOG_BUCKET_WIDTH), 1)
