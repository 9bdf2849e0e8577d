"""The responses dialect under inspection: every text of a request, and every repetition of a text in an answer."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import rule, sent
from tests.engine.dlp.test_streams import cut, engine, openai, text_of_stream, whole_answer
from tests.engine.stages.calls.test_content_filters import instruction, keywords
from tests.support.engine import TENANT, EngineHarness

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.sse import data_of, events, frame
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
RESPONSES = "openai_responses"


async def ask(harness: EngineHarness, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await harness.engine.answer(harness.request({"model": "one/m", **body}, dialect=RESPONSES))
    return answer.status, json.loads(answer.body)


async def streamed(harness: EngineHarness, pieces: Sequence[str], *, arguments: bool = False, **body: Any) -> bytes:
    harness.outbound.script = [(200, list(openai(pieces, arguments=arguments)))]
    request = harness.request({"model": "one/m", "input": "hi", "stream": True, **body}, dialect=RESPONSES)
    answer = await harness.engine.answer(request)
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


async def test_every_text_of_a_request_is_inspected() -> None:
    harness = engine("openai_compatible")
    harness.outbound.script = [(200, [whole_answer("openai_chat", "fine", arguments=False)])]
    status, _ = await ask(harness, **REQUEST)
    assert status == 200
    out = json.dumps(sent(harness))
    assert "4111 1111" not in out
    for word in ("with", "one", "two", "three", "four", "as", "T"):
        assert f"{word} [CREDIT_CARD_1]" in out


@pytest.mark.parametrize(
    "place",
    [
        {"instructions": "PRJ-1234"},
        {"input": "PRJ-1234"},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "PRJ-1234"}]}]},
        {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": "PRJ-1234"}'}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "PRJ-1234"}]},
        {"tools": [{"type": "function", "name": "f", "description": "PRJ-1234"}]},
        {"tools": [{"type": "custom", "name": "f", "format": {"type": "grammar", "definition": "a: PRJ-1234"}}]},
        {"tools": [{"type": "namespace", "name": "n", "description": "PRJ-1234", "tools": []}]},
        {
            "input": [
                {"type": "additional_tools", "tools": [{"type": "custom", "name": "f", "description": "PRJ-1234"}]}
            ]
        },
        {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "PRJ-1234"}]},
        {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": "PRJ-1234"}]},
    ],
)
async def test_a_blocked_match_anywhere_blocks(place: dict[str, Any]) -> None:
    harness = engine("openai_compatible", rule("project", "block", pattern="PRJ-[0-9]{4}"))
    status, body = await ask(harness, **{"input": "hi", **place})
    assert (status, body["error"]["type"]) == (403, "dlp_violation")
    assert not harness.outbound.sent


@pytest.mark.parametrize(
    "place",
    [
        {"instructions": "about Zeus"},
        {"input": "about Zeus"},
        {"input": [{"role": "user", "content": "Zeus"}]},
        {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "about Zeus"}]},
        {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": "about Zeus"}]},
        {"tools": [{"type": "custom", "name": "f", "description": "about Zeus"}]},
    ],
)
async def test_a_content_filters_word_is_found_anywhere(place: dict[str, Any]) -> None:
    harness = engine("openai_compatible")
    harness.governance = GovernanceRecords(filters=(keywords(1, "zeus"),))
    status, shown = await ask(harness, **{"input": "hi", **place})
    assert (status, shown["error"]["code"]) == (403, "content_filter_violation")


async def test_repeated_text_is_redacted_alike_and_counted_once() -> None:
    harness = engine("openai_compatible")
    raw = await streamed(harness, cut(f"Your card {CARD} is good, {CARD}.", range(0, 60, 3)))
    assert text_of_stream(RESPONSES, raw, arguments=False) == "Your card [CREDIT_CARD_1] is good, [CREDIT_CARD_1]."
    assert b"4111 1111" not in raw
    [outcome] = harness.outcomes
    [event] = [event for event in outcome.dlp_events if event.entity_type == "credit_card"]
    assert (event.direction, event.match_count) == ("output", 2)


async def test_repeated_arguments_of_tools_are_redacted_alike() -> None:
    harness = engine("openai_compatible")
    text = json.dumps({"card": CARD, "note": 'a "quoted" one'})
    raw = await streamed(harness, cut(text, range(0, 60, 4)), arguments=True)
    arguments = text_of_stream(RESPONSES, raw, arguments=True)
    assert json.loads(arguments) == {"card": "[CREDIT_CARD_1]", "note": 'a "quoted" one'}
    assert b"4111 1111" not in raw


CUSTOM = [{"type": "custom", "name": "f"}]


async def test_inputs_of_custom_tools_are_changed_alike() -> None:
    harness = engine("openai_compatible")
    arguments = json.dumps({"input": f'pay "now"\nwith {CARD}, please'})
    raw = await streamed(harness, cut(arguments, range(0, 80, 4)), arguments=True, tools=CUSTOM)
    assert b"4111 1111" not in raw
    results = [json.loads(data_of(event)) for event in events(raw)]
    expected = 'pay "now"\nwith [CREDIT_CARD_1], please'
    deltas = [event["delta"] for event in results if event["type"] == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == expected
    [done] = [event["input"] for event in results if event["type"] == "response.custom_tool_call_input.done"]
    assert done == results[-1]["response"]["output"][0]["input"] == expected
    harness = engine("openai_compatible")
    harness.outbound.script = [(200, [whole_answer("openai_chat", arguments, arguments=True)])]
    _, shown = await ask(harness, input="hi", tools=CUSTOM)
    assert shown["output"][0]["input"] == expected


async def test_a_limit_in_the_schema_of_an_added_tool_stays_a_number() -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 4111111111111111}}}
    added = {"type": "additional_tools", "tools": [{"type": "function", "name": "f", "parameters": parameters}]}
    harness = engine("openai_compatible")
    harness.outbound.script = [(200, [whole_answer("openai_chat", "fine", arguments=False)])]
    await ask(harness, input=[added, {"role": "user", "content": "hi"}])
    assert sent(harness)["tools"][0]["function"]["parameters"] == parameters


async def test_a_held_stream_has_the_same_text_in_all_repetitions() -> None:
    harness = engine("openai_compatible", stream_mode="hold")
    raw = await streamed(harness, cut("card NDI0MiA0MjQyIDQyNDIgNDI0Mg== ok", range(0, 40, 3)))
    assert text_of_stream(RESPONSES, raw, arguments=False) == "card [CREDIT_CARD_1] ok"


async def test_one_approval_is_requested() -> None:
    harness = engine("openai_compatible", rule("project", "prompt", pattern="PRJ-[0-9]{4}"))
    harness.flags = {"human_in_loop": True}
    raw = await streamed(harness, cut("About PRJ-1234 then.", range(0, 20, 3)))
    assert text_of_stream(RESPONSES, raw, arguments=False) == "About PRJ-1234 then."
    assert len(harness.approval_questions) == 1


async def test_labels_are_restored_in_all_repetitions() -> None:
    harness = engine("openai_compatible", rule("credit_card", "redact", reversible=True))
    raw = await streamed(harness, ["You said [CRED", "IT_CARD_1], ", "right?"], input=f"my card {CARD}")
    assert text_of_stream(RESPONSES, raw, arguments=False) == f"You said {CARD}, right?"


async def test_the_organizations_instructions_come_first_and_are_not_returned() -> None:
    own = "Never speak of project X."
    for instructions, expected in ((None, own), ("Be kind.", f"{own}\n\nBe kind.")):
        harness = engine("openai_compatible")
        harness.governance = GovernanceRecords(filters=(instruction(1, own),))
        harness.outbound.script = [(200, [whole_answer("openai_chat", "fine", arguments=False)])]
        _, shown = await ask(harness, input="hi", instructions=instructions)
        assert sent(harness)["messages"][0] == {"role": "system", "content": expected}
        assert own not in json.dumps(shown)
        raw = await streamed(harness, ["fine"], instructions=instructions)
        assert own.encode() not in raw


@pytest.mark.parametrize("earlier_text", [None, "another text"])
async def test_a_final_text_that_was_not_streamed_before_is_inspected(earlier_text: str | None) -> None:
    policy = await engine("openai_compatible").current(TENANT)
    examiner = Examiner(Inspection(policy.dlp), NoDetectors(), DlpOptions(), "output")
    guard = StreamGuard(DIALECTS["openai_responses"], examiner)
    place = {"output_index": 0, "content_index": 0}
    if earlier_text is not None:
        piece = {"type": "response.output_text.delta", **place, "delta": earlier_text}
        await guard.push(frame(json.dumps(piece).encode(), piece["type"]))
    done = {"type": "response.output_text.done", **place, "text": CARD}
    raw = await guard.push(frame(json.dumps(done).encode(), done["type"])) + await guard.finish()
    assert b"4111 1111" not in raw
    assert b'"text":"[CREDIT_CARD_1]"' in raw
