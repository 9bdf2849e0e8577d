"""The cost of native calls of the Responses and Messages APIs, beside that of chat completions.

The calls of Python functions are counted, because their number does not depend on the speed of the machine. The lowest
of several counts is taken: timers that expire while requests are served add calls."""

from pathlib import Path

import pytest
from bench.dialects import CASES, Case, calls_of, worlds

#: the highest ratio to a chat
MAX_RATIO = 1.15
COUNTS = 3


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_native_call_of_the_responses_api_needs_little_more_work_than_a_chat(
    case: Case, tmp_path: Path
) -> None:
    started = await worlds(tmp_path, case)
    calls = {name: min([(await calls_of(world)).total() for _ in range(COUNTS)]) for name, world in started.items()}
    for world in started.values():
        await world.close()
    assert calls["chat"] > 100
    assert {name: round(number / calls["chat"], 2) for name, number in calls.items()} == {
        name: pytest.approx(1, abs=MAX_RATIO - 1) for name in calls
    }
