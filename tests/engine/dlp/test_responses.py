"""The responses dialect under inspection: every text of a request, and of an answer wherever it is said again."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.dlp.test_requests import rule, sent
from tests.engine.dlp.test_streams import cut, engine, openai, told, whole_answer
from tests.engine.stages.test_content_filters import instruction, keywords
from tests.support.engine import TENANT, HeldEngine

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.conversation.view import Unreadable
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
RESPONSES = "openai_responses"


async def ask(held: HeldEngine, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await held.engine.answer(held.request({"model": "one/m", **body}, dialect=RESPONSES))
    return answer.status, json.loads(answer.body)


async def streamed(held: HeldEngine, pieces: Sequence[str], *, arguments: bool = False, **body: Any) -> bytes:
    held.outbound.script = [(200, list(openai(pieces, arguments=arguments)))]
    request = held.request({"model": "one/m", "input": "hi", "stream": True, **body}, dialect=RESPONSES)
    answer = await held.engine.answer(request)
    assert answer.stream is not None, answer.body
    return b"".join([block async for block in answer.stream])


REQUEST: dict[str, Any] = {
    "instructions": f"The boss pays with {CARD}.",
    "input": [
        {"role": "user", "content": f"one {CARD}"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"two {CARD}"}]},
        {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": json.dumps({"card": CARD})},
        {"type": "function_call_output", "call_id": "c1", "output": f"three {CARD}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": f"four {CARD}"}]},
    ],
    "tools": [{"type": "function", "name": "pay", "description": f"Pays, as {CARD} does.", "parameters": {}}],
    "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object", "title": f"T {CARD}"}}},
}


async def test_nothing_of_a_request_goes_out_unseen() -> None:
    held = engine("openai_compatible")
    held.outbound.script = [(200, [whole_answer("openai_chat", "fine", arguments=False)])]
    status, _ = await ask(held, **REQUEST)
    assert status == 200
    out = json.dumps(sent(held))
    assert "4111" not in out
    for said in ("with", "one", "two", "three", "four", "as", "T"):
        assert f"{said} [CREDIT_CARD_1]" in out


@pytest.mark.parametrize(
    "place",
    [
        {"instructions": "PRJ-1234"},
        {"input": "PRJ-1234"},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "PRJ-1234"}]}]},
        {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": "PRJ-1234"}'}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "PRJ-1234"}]},
        {"tools": [{"type": "function", "name": "f", "description": "PRJ-1234"}]},
    ],
)
async def test_a_blocked_match_anywhere_blocks(place: dict[str, Any]) -> None:
    held = engine("openai_compatible", rule("project", "block", pattern="PRJ-[0-9]{4}"))
    status, told_ = await ask(held, **{"input": "hi", **place})
    assert (status, told_["error"]["type"]) == (403, "dlp_violation")
    assert not held.outbound.sent


@pytest.mark.parametrize(
    "place", [{"instructions": "about Zeus"}, {"input": "about Zeus"}, {"input": [{"role": "user", "content": "Zeus"}]}]
)
async def test_a_content_filters_word_is_found_anywhere(place: dict[str, Any]) -> None:
    held = engine("openai_compatible")
    held.governance = GovernanceRecords(filters=(keywords(1, "zeus"),))
    status, shown = await ask(held, **{"input": "hi", **place})
    assert (status, shown["error"]["code"]) == (403, "content_filter_violation")


async def test_what_is_said_again_is_changed_alike_and_counted_once() -> None:
    held = engine("openai_compatible")
    raw = await streamed(held, cut(f"Your card {CARD} is good, {CARD}.", range(0, 60, 3)))
    assert told(RESPONSES, raw, arguments=False) == "Your card [CREDIT_CARD_1] is good, [CREDIT_CARD_1]."
    assert b"4111" not in raw
    [outcome] = held.outcomes
    [event] = [each for each in outcome.dlp_events if each.entity_type == "credit_card"]
    assert (event.direction, event.match_count) == ("output", 2)


async def test_arguments_of_tools_are_changed_alike() -> None:
    held = engine("openai_compatible")
    text = json.dumps({"card": CARD, "note": 'a "quoted" one'})
    raw = await streamed(held, cut(text, range(0, 60, 4)), arguments=True)
    said = told(RESPONSES, raw, arguments=True)
    assert json.loads(said) == {"card": "[CREDIT_CARD_1]", "note": 'a "quoted" one'}
    assert b"4111" not in raw


async def test_a_held_stream_says_the_same_everywhere() -> None:
    held = engine("openai_compatible", stream_mode="hold")
    raw = await streamed(held, cut("card NDI0MiA0MjQyIDQyNDIgNDI0Mg== ok", range(0, 40, 3)))
    assert told(RESPONSES, raw, arguments=False) == "card [CREDIT_CARD_1] ok"


async def test_a_person_is_asked_once() -> None:
    held = engine("openai_compatible", rule("project", "prompt", pattern="PRJ-[0-9]{4}"))
    held.flags = {"human_in_loop": True}
    raw = await streamed(held, cut("About PRJ-1234 then.", range(0, 20, 3)))
    assert told(RESPONSES, raw, arguments=False) == "About PRJ-1234 then."
    assert len(held.asked) == 1


async def test_labels_are_turned_back_everywhere() -> None:
    held = engine("openai_compatible", rule("credit_card", "redact", reversible=True))
    raw = await streamed(held, ["You said [CRED", "IT_CARD_1], ", "right?"], input=f"my card {CARD}")
    assert told(RESPONSES, raw, arguments=False) == f"You said {CARD}, right?"


async def test_the_organizations_instructions_come_first_and_are_not_told() -> None:
    own = "Never speak of project X."
    for given, expected in ((None, own), ("Be kind.", f"{own}\n\nBe kind.")):
        held = engine("openai_compatible")
        held.governance = GovernanceRecords(filters=(instruction(1, own),))
        held.outbound.script = [(200, [whole_answer("openai_chat", "fine", arguments=False)])]
        _, shown = await ask(held, input="hi", instructions=given)
        assert sent(held)["messages"][0] == {"role": "system", "content": expected}
        assert own not in json.dumps(shown)
        raw = await streamed(held, ["fine"], instructions=given)
        assert own.encode() not in raw


@pytest.mark.parametrize("said", [None, "another text"])
async def test_what_says_again_what_nobody_said_is_not_let_through(said: str | None) -> None:
    policy = await engine("openai_compatible").current(TENANT)
    examiner = Examiner(Inspection(policy.dlp), NoDetectors(), DlpOptions(), "output")
    guard = StreamGuard(DIALECTS["openai_responses"], examiner)
    place = {"output_index": 0, "content_index": 0}
    if said is not None:
        piece = {"type": "response.output_text.delta", **place, "delta": said}
        await guard.push(frame(json.dumps(piece).encode(), piece["type"]))
    done = {"type": "response.output_text.done", **place, "text": CARD}
    with pytest.raises(Unreadable):
        await guard.push(frame(json.dumps(done).encode(), done["type"]))
