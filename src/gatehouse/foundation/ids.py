"""Identifiers. Rows get time-ordered UUIDs (version 7) so that indexes grow at one end."""

import random
import time
from uuid import UUID

_LOW = (1 << 62) - 1


def new_id() -> UUID:
    """A UUID of version 7: 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    # Unique, not secret: whoever may see a row is decided elsewhere, and a system call an id would cost more.
    chance = random.getrandbits(74)
    value = milliseconds << 80 | 0x7 << 76 | (chance >> 62) << 64 | 0x2 << 62 | (chance & _LOW)
    return UUID(int=value)
