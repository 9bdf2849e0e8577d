"""If a process was suspended while a request waited for a connection, it synchronizes before it sends the request."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.engine import EngineHarness, completion

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m")
    harness.outbound.script = [(200, [completion("Hello")])]
    return harness


def knowing(*answers: bool) -> Callable[[], bool]:
    """Return an `up_to_date` that gives these answers. It is called before an attempt and again right before the first
    byte."""
    result: Iterator[bool] = iter(answers)
    return lambda: next(result)


def catching_up(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None] = lambda: None
) -> list[int]:
    """Record each synchronization. `then` runs at the second one."""
    calls: list[int] = []

    async def in_touch() -> None:
        calls.append(len(harness.outbound.sent))
        if len(calls) == 2:
            then()

    monkeypatch.setattr(harness, "in_touch", in_touch)
    return calls


async def test_the_process_synchronizes_and_then_sends(harness: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "up_to_date", knowing(True, False, True, True))
    calls = catching_up(harness, monkeypatch)
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == 200
    assert calls == [0, 0]
    assert len(harness.outbound.sent) == 1


async def test_a_change_found_by_the_synchronization_is_applied(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "up_to_date", knowing(True, False, True))
    catching_up(harness, monkeypatch, then=lambda: harness.off.add("m"))
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, harness.outbound.sent) == (503, [])
    (outcome,) = harness.outcomes
    assert outcome.error_code == "provider_unavailable"


async def test_a_revoked_credential_is_detected_too(harness: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "up_to_date", knowing(True, False, True))
    catching_up(harness, monkeypatch, then=lambda: setattr(harness, "good", False))
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, harness.outbound.sent) == (401, [])


async def test_a_process_that_cannot_synchronize_refuses(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "up_to_date", lambda: False)
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, harness.outbound.sent) == (503, [])
    (outcome,) = harness.outcomes
    assert outcome.error_code == "switch_state_unknown"
