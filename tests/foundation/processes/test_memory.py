"""When memory is returned to the operating system."""

from collections.abc import Sequence

import pytest

from gatehouse.foundation.processes import memory
from gatehouse.foundation.processes.memory import LOOKS_AFTER_PEAK, MemoryTrimmer

MIB = 1024**2


class Process:
    """A process with a prescribed size in MiB at each check."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = list(sizes)
        self.size = self._sizes.pop(0)
        self.collected = self.trimmed = 0
        self.trimmer = MemoryTrimmer(lambda: self.size * MIB, self._collect, self._trim)

    def _collect(self) -> None:
        self.collected += 1

    def _trim(self) -> None:
        self.trimmed += 1

    async def look(self) -> None:
        while self._sizes:
            self.size = self._sizes.pop(0)
            await self.trimmer.look()


@pytest.mark.parametrize(
    ("sizes", "collected", "trimmed"),
    [
        # If the size hardly changes, nothing is done.
        ([100, 101, 110, 105, 112], 0, 0),
        # While the process grows, nothing is collected.
        ([100, 400, 700], 0, 2),
        # A long peak ends when the size falls.
        ([100, *[700] * (LOOKS_AFTER_PEAK + 5), 300, 290], LOOKS_AFTER_PEAK - 1 + 2, LOOKS_AFTER_PEAK + 2),
        # A minute after the peak, no further attempt is made.
        ([100, 400, *[150] * 20], LOOKS_AFTER_PEAK, 1 + LOOKS_AFTER_PEAK),
    ],
)
async def test_memory_is_returned_for_a_minute_after_a_peak(sizes: list[int], collected: int, trimmed: int) -> None:
    process = Process(sizes)
    await process.look()
    assert (process.collected, process.trimmed) == (collected, trimmed)


async def test_without_a_known_memory_size_nothing_is_trimmed() -> None:
    await MemoryTrimmer(lambda: None).run()


def test_the_resident_size_is_that_of_this_process() -> None:
    size = memory.resident_bytes()
    assert size is not None
    assert 20 * MIB < size < 10_000 * MIB
