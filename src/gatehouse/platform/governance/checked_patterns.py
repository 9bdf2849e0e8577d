"""Compiling aside: what an organization writes as a pattern is tried before anything is stored."""

import asyncio
from collections.abc import Sequence

from gatehouse.detection.checking import check_pattern
from gatehouse.foundation.errors import FieldFault, Unprocessable


async def faults_of(patterns: Sequence[tuple[str, str]]) -> list[FieldFault]:
    """What is wrong with patterns, each given with the name of its field. In a thread: a hostile one takes a second."""
    return await asyncio.to_thread(_faults, patterns)


async def refuse_bad(field: str, pattern: str) -> None:
    """Raises `Unprocessable` (here 400: the family's word) with RE2's reason and the place in the pattern."""
    if faults := await faults_of([(field, pattern)]):
        raise Unprocessable(faults=faults)


def _faults(patterns: Sequence[tuple[str, str]]) -> list[FieldFault]:
    return [FieldFault(field, str(fault)) for field, regex in patterns if (fault := check_pattern(regex)) is not None]
