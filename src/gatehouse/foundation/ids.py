"""Identifiers. Rows get time-ordered UUIDs (version 7), so that indexes grow at one end."""

import random
import time
from uuid import UUID

_LOW = (1 << 62) - 1


def new_id() -> UUID:
    """Return a UUID of version 7: 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    # Ids are unique, not secret: access is checked elsewhere, so no system call for each id is needed.
    random_bits = random.getrandbits(74)
    value = milliseconds << 80 | 0x7 << 76 | (random_bits >> 62) << 64 | 0x2 << 62 | (random_bits & _LOW)
    return UUID(int=value)
