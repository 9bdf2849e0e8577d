"""Identifiers of rows: UUIDs of version 7, which are ordered by time, so that indexes grow at one end."""

import random
import time
from uuid import UUID

_LOW_BITS_MASK = (1 << 62) - 1


def new_id() -> UUID:
    """Returns a UUID of version 7: 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    # An id is no secret, so the random bits need not be unpredictable. `random` needs no system call.
    random_bits = random.getrandbits(74)
    value = milliseconds << 80 | 0x7 << 76 | (random_bits >> 62) << 64 | 0x2 << 62 | (random_bits & _LOW_BITS_MASK)
    return UUID(int=value)
