"""The tiers in the present process: they behave as in the detection process, except for faults that would end the
process."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from tests.support.detection import broken, stand_ins
from tests.support.in_process_detectors import InProcessDetectors

from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierFailed
from gatehouse.detection.service.tiers import TierModels


async def failure(call: Awaitable[Any]) -> str:
    with pytest.raises(TierFailed) as failed:
        await call
    return str(failed.value)


async def test_both_tiers_answer() -> None:
    detectors = InProcessDetectors(stand_ins(), budget=5, queue=10)
    assert (await detectors.health())["ner"].detail == "idle"
    assert await detectors.entities(["nobody", "Anna"]) == [[], [Finding(0, 4, "person", 1.0, "person")]]
    assert await detectors.semantic(["a"], ["x"]) == [{"x": 0.001}]
    assert {(one.status, one.detail) for one in (await detectors.health()).values()} == {("healthy", "loaded")}


async def test_detectors_in_this_process_have_the_same_failures_as_the_detection_process() -> None:
    detectors = InProcessDetectors(stand_ins(), budget=0.2, queue=2)
    assert await failure(detectors.entities(["raise"])) == "ner: crashed"
    slow = asyncio.create_task(failure(detectors.entities(["sleep 0.5", "a"])))
    await asyncio.sleep(0.05)
    assert await failure(detectors.entities(["b"])) == "ner: overloaded"
    assert await slow == "ner: timeout"
    assert (await detectors.health())["ner"].status == "degraded"
    # The timeout is long, because the failure is logged first with its traceback.
    unusable = InProcessDetectors(TierModels(broken, broken), budget=20, queue=2)
    assert await failure(unusable.semantic(["a"], ["x"])) == "llm: unavailable"
