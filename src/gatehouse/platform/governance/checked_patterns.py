"""Checks organizations' regular expressions in a thread, before they are stored."""

import asyncio
from collections.abc import Sequence

from gatehouse.detection.custom import check_pattern
from gatehouse.foundation.errors import FieldFault, Unprocessable


def faults(patterns: Sequence[tuple[str, str]]) -> list[FieldFault]:
    """Return the faults of `patterns`, which are pairs of field name and pattern. Call it in a thread, because it
    blocks for tens of milliseconds for a hostile pattern."""
    return [FieldFault(field, str(fault)) for field, regex in patterns if (fault := check_pattern(regex)) is not None]


async def require_valid(field: str, pattern: str) -> None:
    """Check `pattern` in a thread. Raises `Unprocessable` with RE2's reason and the position in the pattern."""
    if pattern_faults := await asyncio.to_thread(faults, [(field, pattern)]):
        raise Unprocessable(faults=pattern_faults)
