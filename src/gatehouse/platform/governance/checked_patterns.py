"""Compiling aside: what an organization writes as a pattern is tried before anything is stored."""

import asyncio
from collections.abc import Sequence

from gatehouse.detection.custom import check_pattern
from gatehouse.foundation.errors import FieldFault, Unprocessable


def faults(patterns: Sequence[tuple[str, str]]) -> list[FieldFault]:
    """What is wrong with patterns, each given behind the name of its field. Blocks, some ten milliseconds for a hostile
    one: for a thread."""
    return [FieldFault(field, str(fault)) for field, regex in patterns if (fault := check_pattern(regex)) is not None]


async def refuse_bad(field: str, pattern: str) -> None:
    """Raises `Unprocessable` (here 400: the family's word) with RE2's reason and the place in the pattern."""
    if found := await asyncio.to_thread(faults, [(field, pattern)]):
        raise Unprocessable(faults=found)
