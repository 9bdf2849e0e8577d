"""What is spent, on disk: a place of 64 bytes for each period of each budget, written over in one step.

A write into the page cache takes some microseconds and survives kill -9; `sync` brings it to the disk now and then.
What is set aside is written, too: a call that a kill cut short may have been made, and is taken for spent.
"""

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final
from uuid import UUID
from zlib import crc32

from gatehouse.engine.quotas import NOTHING, Triple
from gatehouse.foundation.settings import BadSettings
from gatehouse.policy.periods import Span

_CRC: Final = struct.Struct("<I")
#: budget, the period's beginning and end, nano USD, requests, tokens
_BODY: Final = struct.Struct("<16sqqQQQ4x")
_SIZE: Final = _CRC.size + _BODY.size
_FREE: Final = bytes(_SIZE)


class Tally:
    """One process's, which nobody else opens meanwhile. Raises `BadSettings` where another process does, and where what
    is there cannot be read: what is spent must not be forgotten."""

    def __init__(self, path: Path, now: float) -> None:
        """Periods that were over at `now` (Unix time) make place."""
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Two that count here, each for itself, would spend the same budget twice.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise BadSettings(
                f"GATEHOUSE_HOME: another outpost is running in {path.parent}; each needs a home of its own"
            ) from None
        self._places: dict[tuple[UUID, int], int] = {}
        self._free: list[int] = []
        self._known: dict[tuple[UUID, int], Triple] = {}
        self._end = 0
        #: whether the disk is behind
        self.dirty = False
        self._read(now)

    def close(self) -> None:
        self.sync()
        os.close(self._descriptor)
        # A call that is settled late finds no file, and not another's.
        self._descriptor = -1

    def take(self, budget_id: UUID, period: Span) -> Triple:
        """What is on record of the period."""
        return self._known.pop((budget_id, period.start), NOTHING)

    def write(self, budget_id: UUID, period: Span, held: Triple) -> None:
        """Raises `OSError`."""
        place = self._places.get((budget_id, period.start))
        if place is None:
            place = self._places[budget_id, period.start] = self._free.pop() if self._free else self._end
            self._end = max(self._end, place + _SIZE)
        usd, requests, tokens = held
        body = _BODY.pack(budget_id.bytes, period.start, period.end, max(usd, 0), max(requests, 0), max(tokens, 0))
        os.pwrite(self._descriptor, _CRC.pack(crc32(body)) + body, place)
        self.dirty = True

    def drop(self, budget_id: UUID, period: Span) -> None:
        """Its period is over."""
        place = self._places.pop((budget_id, period.start), None)
        if place is not None:
            self._free.append(place)
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, _FREE, place)

    def sync(self) -> None:
        """For a thread: takes milliseconds. A disk that fails is told by the next write."""
        if self.dirty:
            self.dirty = False
            with contextlib.suppress(OSError):
                os.fdatasync(self._descriptor)

    def _read(self, now: float) -> None:
        held = self._path.read_bytes()
        for place in range(0, len(held) - _SIZE + 1, _SIZE):
            line = held[place : place + _SIZE]
            if line == _FREE:
                self._free.append(place)
                continue
            if _CRC.unpack(line[: _CRC.size])[0] != crc32(line[_CRC.size :]):
                raise BadSettings(f"{self._path} cannot be read: it says what is spent; remove it to begin anew")
            identity, start, end, *spent = _BODY.unpack(line[_CRC.size :])
            if end <= now:
                self._free.append(place)
                continue
            key = UUID(bytes=identity), start
            self._places[key] = place
            self._known[key] = (spent[0], spent[1], spent[2])
        # A line that a loss of power cut short is written over.
        self._end = len(held) // _SIZE * _SIZE
