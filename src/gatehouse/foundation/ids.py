"""Identifiers. Rows get time-ordered UUIDs (version 7) so that indexes grow at one end."""

import os
import time
from uuid import UUID


def new_id() -> UUID:
    """A UUID of version 7: 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | int.from_bytes(os.urandom(10))
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return UUID(int=value)
