"""A process that was stopped while a request waited for a connection sends nothing by what it knew before."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.engine import HeldEngine, completion

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def held() -> HeldEngine:
    held = HeldEngine()
    held.serve("one", "m")
    held.outbound.script = [(200, [completion("Hello")])]
    return held


def knowing(*answers: bool) -> Callable[[], bool]:
    """`up_to_date` as told: asked before an attempt and again right before its first byte."""
    told: Iterator[bool] = iter(answers)
    return lambda: next(told)


def catching_up(
    held: HeldEngine, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None] = lambda: None
) -> list[int]:
    """Notes each catching up; `then` runs at the second."""
    calls: list[int] = []

    async def in_touch() -> None:
        calls.append(len(held.outbound.sent))
        if len(calls) == 2:
            then()

    monkeypatch.setattr(held, "in_touch", in_touch)
    return calls


async def test_it_catches_up_and_then_sends(held: HeldEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "up_to_date", knowing(True, False, True, True))
    calls = catching_up(held, monkeypatch)
    answer = await held.engine.answer(held.request(CHAT))
    assert answer.status == 200
    assert calls == [0, 0]
    assert len(held.outbound.sent) == 1


async def test_what_it_learns_then_counts(held: HeldEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "up_to_date", knowing(True, False, True))
    catching_up(held, monkeypatch, then=lambda: held.off.add("m"))
    answer = await held.engine.answer(held.request(CHAT))
    assert (answer.status, held.outbound.sent) == (503, [])
    (outcome,) = held.outcomes
    assert outcome.error_code == "provider_unavailable"


async def test_a_revoked_credential_is_found_out_too(held: HeldEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "up_to_date", knowing(True, False, True))
    catching_up(held, monkeypatch, then=lambda: setattr(held, "good", False))
    answer = await held.engine.answer(held.request(CHAT))
    assert (answer.status, held.outbound.sent) == (401, [])


async def test_one_that_never_catches_up_gives_up(held: HeldEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "up_to_date", lambda: False)
    answer = await held.engine.answer(held.request(CHAT))
    assert (answer.status, held.outbound.sent) == (503, [])
    (outcome,) = held.outcomes
    assert outcome.error_code == "switch_state_unknown"
