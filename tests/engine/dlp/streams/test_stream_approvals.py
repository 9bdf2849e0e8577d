"""Approvals in streams whose other texts continue in the meantime."""

import json
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.dlp.streams.test_stream_shapes import CARD, DONE, chunk, delta, waiting_stream

from gatehouse.engine.dlp.streams.stream import StreamGuard

PROMPT = rule("credit_card", "prompt")
FIRST = "The first choice ends only when the second has ended, 4111 1111"


def two_choices() -> list[bytes]:
    """Choice 1 has a card number, more text, and its end, while an earlier event still waits for choice 0."""
    return [
        chunk(delta(0, content=FIRST), delta(1, content=f"My card is {CARD} and that is ")),
        chunk(delta(1, content="all that there is to say about it.")),
        chunk(delta(1, "stop")),
        chunk(delta(0, content=" apples.")),
        chunk(delta(0, "stop")),
        DONE,
    ]


@pytest.mark.parametrize("at_once", [True, False])
async def test_text_that_arrives_before_an_approval_is_sent_after_it(at_once: bool) -> None:
    events = [b"".join(two_choices())] if at_once else two_choices()
    harness, stream = await waiting_stream(events, rules=(PROMPT,))
    raw = b"".join([block async for block in stream])
    assert raw.endswith(DONE)
    sent: dict[int, str] = {}
    for event in raw.decode().split("\n\n"):
        if event.startswith("data: {"):
            for choice in json.loads(event[6:])["choices"]:
                index = choice["index"]
                sent[index] = sent.get(index, "") + (choice["delta"].get("content") or "")
    assert sent == {
        0: f"{FIRST} apples.",
        1: f"My card is {CARD} and that is all that there is to say about it.",
    }
    assert len(harness.outcomes) == 1


async def test_a_second_finding_before_the_approval_of_the_first_needs_its_own() -> None:
    events = two_choices()
    events[1] = chunk(delta(1, content=f"all, but for {CARD} of course."))
    harness, stream = await waiting_stream(events, rules=(PROMPT,))
    raw = b"".join([block async for block in stream])
    assert raw.endswith(DONE)
    assert raw.count(CARD.encode()) == 2
    assert len(harness.approval_questions) == 2


async def test_a_stream_that_holds_back_events_at_its_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_advance(*_: Any, **__: Any) -> None:
        pass

    monkeypatch.setattr(StreamGuard, "_advance", no_advance)
    _, stream = await waiting_stream(
        [chunk(delta(0, content="A text.")), chunk(delta(0, "stop")), DONE], rules=(PROMPT,)
    )
    raw = b"".join([block async for block in stream])
    assert not raw.endswith(DONE)
    assert b"error" in raw
