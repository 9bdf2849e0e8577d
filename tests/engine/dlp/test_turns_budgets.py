"""The budget for the inspection of one request, in every part of the work, and the behaviour beyond it."""

import json
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from tests.engine.dlp.scenarios.test_requests import CARD, ask, engine, user
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.dlp import examine, turns
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams.channel import Channel
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.dlp.compile import compile_dlp
from gatehouse.policy.dlp.compiled import DlpPolicy
from gatehouse.policy.governance import FilterRecord, GovernanceRecords

ARGUMENTS = json.dumps({"card": CARD})
CALLS = [{"id": "c", "type": "function", "function": {"name": "pay", "arguments": ARGUMENTS}}] * 500


def engine_policy() -> DlpPolicy:
    policy, faults = compile_dlp(GovernanceRecords(), {})
    assert not faults
    return policy


def with_filter(harness: EngineHarness) -> None:
    record = FilterRecord(id=UUID(int=7), name="words", filter_type="keyword_block", priority=1, keywords=("falcon",))
    harness.governance = GovernanceRecords(filters=(record,))


@pytest.mark.parametrize("side", ["request", "answer"])
async def test_many_short_texts_are_not_searched_on_the_event_loop(monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    threads: list[int] = []
    scan = examine.scan_in_slices

    def watched(*arguments: Any, **more: Any) -> Iterator[Any]:
        threads.append(threading.get_ident())
        return scan(*arguments, **more)

    harness = engine()
    monkeypatch.setattr(examine, "scan_in_slices", watched)
    monkeypatch.setattr(turns, "INLINE_WORK_SECONDS", 0.0)
    message = {"role": "assistant", "content": None, "tool_calls": CALLS}
    if side == "answer":
        body = json.loads(completion())
        body["choices"][0]["message"] = message
        harness.outbound.script[:] = [(200, [json.dumps(body).encode()])]
        await ask(harness, user("hi"))
    else:
        await ask(harness, {"messages": [message]})
    assert threads.count(threading.get_ident()) <= 5
    assert len(threads) >= len(CALLS)


@pytest.mark.parametrize(("mode", "expected"), [("closed", 503), ("open", 200)])
async def test_content_filters_have_a_budget(mode: str, expected: int) -> None:
    harness = engine(fail_mode=mode, pattern_work_seconds=0.0)
    harness.flags = {"dlp_enabled": False}
    with_filter(harness)
    status, body = await ask(harness, user("and so on, " * 20_000))
    assert status == expected
    if mode == "closed":
        assert body["error"]["code"] == "dlp_unavailable"
        assert harness.outbound.sent == []
    (event,) = harness.outcomes[0].rule_events
    assert (event.rule_name, event.result) == ("words", "failed")


@pytest.mark.parametrize("mode", ["closed", "open"])
async def test_a_stream_of_many_short_pieces_has_a_budget(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    # Each unit of work takes one second.
    monkeypatch.setattr(examine, "thread_time", count().__next__)
    harness = engine(fail_mode=mode, pattern_work_seconds=6.0)
    harness.outbound.script[:] = [(200, events(*["and so on, " * 20] * 30))]
    answer = await harness.engine.answer(harness.request({"model": "one/m", "stream": True, **user("hi")}))
    assert answer.stream is not None, answer.body
    raw = b"".join([block async for block in answer.stream])
    assert (b"dlp_unavailable" in raw) == (mode == "closed")
    assert (raw.count(b"and so on") == 600) == (mode == "open")
    [failure] = [event for event in harness.outcomes[-1].dlp_events if event.entity_type == "tier_failure"]
    assert (failure.rule_name, failure.direction) == ("regex: work", "output")
    assert failure.status == ("blocked" if mode == "closed" else "logged")


async def test_a_stream_beyond_its_budget_redacts_and_records_nothing_more() -> None:
    inspection = Inspection(engine_policy())
    options = DlpOptions(fail_mode="open", pattern_work_seconds=0.0)
    channel = Channel(Examiner(inspection, NoDetectors(), options, "output"))
    begun = f"mail a@b.de and {CARD}. " * 3000
    for piece, final in ((begun, False), (f"my card is {CARD}, and so it goes on. " * 5, False), ("end.", True)):
        channel.push(piece)
        await channel.advance(final=final)
    known = sum(event.match_count for event in inspection.events() if event.entity_type == "credit_card")
    text = channel.take(0, channel.released)
    assert channel.released == channel.end
    assert text.endswith(f"my card is {CARD}, and so it goes on. " * 5 + "end.")
    assert begun.count(CARD) + 5 - text.count(CARD) == known


@pytest.mark.parametrize(("mode", "expected"), [("closed", 503), ("open", 200)])
async def test_the_work_around_the_search_has_a_budget(mode: str, expected: int) -> None:
    harness = engine(fail_mode=mode, pattern_work_seconds=0.0)
    status, _ = await ask(harness, {**user("hi"), "metadata": {"x": [0] * 100_000}})
    assert status == expected
    noted = [
        (event.entity_type, event.rule_name) for event in harness.outcomes[0].dlp_events if event.direction == "input"
    ]
    assert noted == [("tier_failure", "regex: work")]
