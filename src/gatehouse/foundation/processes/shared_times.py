"""Times by key, in memory that a process shares with its forked children.

Reading and writing takes microseconds and never waits, because nothing is locked. The memory has a fixed size. A time
can be lost if two processes write at the same moment, or if too many times are in the future. So it is only a hint.
"""

import hashlib
import mmap
from typing import Final

#: Number of times that fit into the memory.
_SLOTS: Final = 4096
#: Number of adjacent slots in which a key is stored.
_WAYS: Final = 8
_WORD_BYTES: Final = 8


class SharedTimes:
    """Monotonic times in nanoseconds, which all processes of a machine share. Keys are stored as digests of 64 bits."""

    def __init__(self) -> None:
        # Processes forked from this one inherit anonymous shared memory. The first word is the latest time.
        self._words = memoryview(mmap.mmap(-1, (1 + 2 * _SLOTS) * _WORD_BYTES)).cast("q")

    def any_after(self, now: int) -> bool:
        """Return whether a time after `now` may be stored."""
        return self._words[0] > now

    def put(self, key: bytes, time: int) -> None:
        """Store the time of a key. It replaces the earlier time of this key. If there is no free slot, it replaces the
        earliest time of a few other keys."""
        words, digest = self._words, _digest(key)
        places = _places(digest)
        place = next((place for place in places if words[place] == digest), None)
        if place is None:
            place = min(places, key=lambda place: words[place + 1])
        # A reader between these steps gets no time.
        words[place + 1] = 0
        words[place] = digest
        words[place + 1] = time
        words[0] = max(words[0], time)

    def get(self, key: bytes) -> int:
        """Return the time of a key; 0 if none is stored."""
        words, digest = self._words, _digest(key)
        for place in _places(digest):
            if words[place] == digest:
                time = words[place + 1]
                # Another process may have given the slot to another key.
                return time if words[place] == digest else 0
        return 0


def _digest(key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=_WORD_BYTES).digest(), "big", signed=True)


def _places(digest: int) -> list[int]:
    """Return the indices of the words at which the slots of a key begin."""
    return [1 + 2 * ((digest + way) % _SLOTS) for way in range(_WAYS)]
