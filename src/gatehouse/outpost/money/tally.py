"""Amounts spent, on disk: a slot of 64 bytes for each period of each budget, overwritten in one step.

A write into the page cache takes some microseconds and survives kill -9; `sync` writes it to the disk from time to
time. Reserved amounts are written too: a call that a kill cut short may have been made, and counts as spent.
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
    """One process's amounts, in a file locked against other processes. Raises `BadSettings` if another process holds
    the lock, or if the file cannot be read: what is spent must not be forgotten."""

    def __init__(self, path: Path, now: float) -> None:
        """Slots of periods that had ended at `now` (Unix time) are reused."""
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Two processes that count separately would spend the same budget twice.
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
        #: whether data was written that is not synced to the disk yet
        self.dirty = False
        self._read(now)

    def close(self) -> None:
        self.sync()
        os.close(self._descriptor)
        # A late `write` fails, instead of writing to a reused descriptor.
        self._descriptor = -1

    def take(self, budget_id: UUID, period: PeriodSpan) -> Triple:
        """Returns the stored amounts of the period, and forget them."""
        return self._loaded.pop((budget_id, period.start), NOTHING)

    def write(self, budget_id: UUID, period: PeriodSpan, amounts: Triple) -> None:
        """Raises `OSError`."""
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
        """Takes milliseconds: call it in a thread. A failing disk is reported by the next write."""
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
                raise BadSettings(f"{self._path} cannot be read: it says what is spent; remove it to begin anew")
            identity, start, end, *spent = _BODY.unpack(record[_CRC.size :])
            if end <= now:
                self._free_slots.append(slot)
                continue
            key = UUID(bytes=identity), start
            self._slots[key] = slot
            self._loaded[key] = (spent[0], spent[1], spent[2])
        # An incomplete slot at the end, left by a power failure, is overwritten.
        self._end = len(content) // _SLOT_BYTES * _SLOT_BYTES
