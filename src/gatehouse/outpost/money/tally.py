"""Stores spent amounts on disk. Each period of each budget has a slot of 64 bytes, which is overwritten in one step.

A write to the page cache takes some microseconds and survives kill -9. `sync` writes the page cache to the disk from
time to time. Reserved amounts are also written: after kill -9, a running call may have been made, so it is treated as
spent.
"""

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final
from uuid import UUID
from zlib import crc32

from gatehouse.engine.money.quotas import NOTHING, Triple
from gatehouse.foundation.settings import BadSettings
from gatehouse.policy.periods import PeriodSpan

_CRC: Final = struct.Struct("<I")
#: Budget id, the period's beginning and end, nano USD, requests, tokens.
_BODY: Final = struct.Struct("<16sqqQQQ4x")
_SLOT_BYTES: Final = _CRC.size + _BODY.size
_FREE_SLOT: Final = bytes(_SLOT_BYTES)


class Tally:
    """The spent amounts of one process, in a file that it locks. Raises `BadSettings` if another process has locked the
    file, or if the file cannot be read, because without the spent amounts the process would spend them again."""

    def __init__(self, path: Path, now: float) -> None:
        """Reads the file. The slots of periods that ended before `now` (Unix time) are reused."""
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Two processes that count separately could spend the same budget twice.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise BadSettings(
                f"GATEHOUSE_HOME: another outpost is running in {path.parent}; each needs a home of its own"
            ) from None
        self._slots: dict[tuple[UUID, int], int] = {}
        self._free_slots: list[int] = []
        self._loaded: dict[tuple[UUID, int], Triple] = {}
        self._end = 0
        #: whether data has been written that is not on the disk yet
        self.dirty = False
        self._read(now)

    def close(self) -> None:
        self.sync()
        os.close(self._descriptor)
        # A later `write` then fails. Otherwise it could write to another file with the same descriptor.
        self._descriptor = -1

    def take(self, budget_id: UUID, period: PeriodSpan) -> Triple:
        """Returns the stored amounts of the period, and removes them from the loaded amounts."""
        return self._loaded.pop((budget_id, period.start), NOTHING)

    def write(self, budget_id: UUID, period: PeriodSpan, amounts: Triple) -> None:
        """Writes the amounts of a period. Raises `OSError`."""
        slot = self._slots.get((budget_id, period.start))
        if slot is None:
            slot = self._slots[budget_id, period.start] = self._free_slots.pop() if self._free_slots else self._end
            self._end = max(self._end, slot + _SLOT_BYTES)
        usd, requests, tokens = amounts
        body = _BODY.pack(budget_id.bytes, period.start, period.end, max(usd, 0), max(requests, 0), max(tokens, 0))
        os.pwrite(self._descriptor, _CRC.pack(crc32(body)) + body, slot)
        self.dirty = True

    def drop(self, budget_id: UUID, period: PeriodSpan) -> None:
        """Frees the slot of an ended period."""
        slot = self._slots.pop((budget_id, period.start), None)
        if slot is not None:
            self._free_slots.append(slot)
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, _FREE_SLOT, slot)

    def sync(self) -> None:
        """Writes the page cache to the disk. Call it in a thread, because it takes milliseconds. Errors are ignored: if
        the disk fails, the next `write` raises an error."""
        if self.dirty:
            self.dirty = False
            with contextlib.suppress(OSError):
                os.fdatasync(self._descriptor)

    def _read(self, now: float) -> None:
        content = self._path.read_bytes()
        for slot in range(0, len(content) - _SLOT_BYTES + 1, _SLOT_BYTES):
            record = content[slot : slot + _SLOT_BYTES]
            if record == _FREE_SLOT:
                self._free_slots.append(slot)
                continue
            if _CRC.unpack(record[: _CRC.size])[0] != crc32(record[_CRC.size :]):
                raise BadSettings(f"{self._path} is damaged (it has the spent amounts); remove it to count from zero")
            identity, start, end, *spent = _BODY.unpack(record[_CRC.size :])
            if end <= now:
                self._free_slots.append(slot)
                continue
            key = UUID(bytes=identity), start
            self._slots[key] = slot
            self._loaded[key] = (spent[0], spent[1], spent[2])
        # An incomplete slot at the end of the file, which a loss of power may leave, is overwritten.
        self._end = len(content) // _SLOT_BYTES * _SLOT_BYTES
