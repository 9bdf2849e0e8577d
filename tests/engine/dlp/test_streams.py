"""A streamed answer has the same text as the whole answer, for any cut into pieces, and no redacted value is sent."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.engine import EngineHarness

from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords

CARDS = ("4111 1111 1111 1111", "5555555555554444", "3782 822463 10005")
SECRETS = (*CARDS, "DE89 3704 0044 0532 0130 00", "536-22-1234", "AKIA" + "Z7Q2MXR4TNVB5KLP", "10.1.2.3")
WORDS = st.sampled_from(
    [
        "the card",
        "is",
        "and",
        "pays.",
        "Hello,",
        "IBAN",
        "SSN:",
        "key",
        "1",
        "2024-05-06",
        "caf\u00e9",
        "\u4f60\u597d",
        "\n",
        "[x]",
        "a@b",
    ]
)
PIECES = st.one_of(WORDS, st.sampled_from(SECRETS), st.text(alphabet="ab1 -.\u200b\uff11", max_size=8))


def answer_events(dialect: str, pieces: Sequence[str], *, arguments: bool) -> list[bytes]:
    return (
        anthropic(pieces, arguments=arguments)
        if dialect == "anthropic_messages"
        else openai(pieces, arguments=arguments)
    )


def openai(pieces: Sequence[str], *, arguments: bool) -> list[bytes]:
    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    def delta(piece: str) -> dict[str, Any]:
        if not arguments:
            return {"content": piece}
        return {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}

    first = {"tool_calls": [{"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}]}
    begin = [event({"role": "assistant", **(first if arguments else {"content": ""})})]
    return [*begin, *(event(delta(piece)) for piece in pieces), event({}, "stop"), b"data: [DONE]\n\n"]


def anthropic(pieces: Sequence[str], *, arguments: bool) -> list[bytes]:
    def event(kind: str, **data: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    message = {
        "id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {}} if arguments else {"type": "text", "text": ""}
    kind, field = ("input_json_delta", "partial_json") if arguments else ("text_delta", "text")
    return [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block=block),
        *(event("content_block_delta", index=0, delta={"type": kind, field: piece}) for piece in pieces),
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 5}),
        event("message_stop"),
    ]


def whole_answer(dialect: str, text: str, *, arguments: bool) -> bytes:
    if dialect == "anthropic_messages":
        block: dict[str, Any] = {"type": "text", "text": text}
        if arguments:
            block = {"type": "tool_use", "id": "t", "name": "f", "input": json.loads(text)}
        return json.dumps(
            {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block],
             "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        ).encode()  # fmt: skip
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if arguments:
        call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": text}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()


def text_of_stream(dialect: str, raw: bytes, *, arguments: bool) -> str:
    """Return the text that the events of a stream add up to."""
    if dialect == "openai_responses":
        return text_of_responses(raw, arguments=arguments)
    text = ""
    for line in raw.decode().splitlines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        data = json.loads(line[6:])
        if dialect == "anthropic_messages":
            delta = data.get("delta", {})
            text += delta.get("partial_json" if arguments else "text", "")
        for choice in data.get("choices", ()):
            delta = choice["delta"]
            if arguments:
                text += "".join(call["function"].get("arguments", "") for call in delta.get("tool_calls", ()))
            else:
                text += delta.get("content") or ""
    return text


def text_of_responses(raw: bytes, *, arguments: bool) -> str:
    """Return the joined pieces. Asserts that each event that repeats the text has the same text."""
    results = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: ")]
    kind = "response.function_call_arguments" if arguments else "response.output_text"
    field = "arguments" if arguments else "text"
    text = "".join(event["delta"] for event in results if event["type"] == f"{kind}.delta")
    again = [event[field] for event in results if event["type"] == f"{kind}.done"]
    items = [event["item"] for event in results if event["type"] == "response.output_item.done"]
    items += [
        item for event in results if event["type"] == "response.completed" for item in event["response"]["output"]
    ]
    again += [item["arguments"] if arguments else item["content"][0]["text"] for item in items]
    again += [event["part"]["text"] for event in results if event["type"] == "response.content_part.done"]
    assert set(again) <= {text}
    assert again or not items
    numbers = [event["sequence_number"] for event in results if "sequence_number" in event]
    assert numbers == list(range(len(numbers)))
    return text


def text_of_whole_answer(dialect: str, raw: bytes, *, arguments: bool) -> Any:
    data = json.loads(raw)
    if dialect == "openai_responses":
        if not data["output"]:
            return ""
        [item] = data["output"]
        return item["arguments"] if arguments else item["content"][0]["text"]
    if dialect == "anthropic_messages":
        block = data["content"][0]
        return block["input"] if arguments else block["text"]
    message = data["choices"][0]["message"]
    return message["tool_calls"][0]["function"]["arguments"] if arguments else message["content"]


#: Routes: the client's dialect, the kind of the provider, and the provider's dialect.
ROUTES = [
    ("openai_chat", "openai_compatible", "openai_chat"),
    ("anthropic_messages", "anthropic", "anthropic_messages"),
    ("openai_chat", "anthropic", "anthropic_messages"),
    ("openai_responses", "openai_compatible", "openai_chat"),
    ("openai_responses", "anthropic", "anthropic_messages"),
]


def engine(kind: str, *rules: DlpRuleRecord, **options: Any) -> EngineHarness:
    harness = EngineHarness(dlp=DlpOptions(**options))
    harness.serve("one", "m", kind=kind)
    harness.governance = GovernanceRecords(dlp_rules=rules)
    return harness


QUESTION = {"model": "one/m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}


async def streamed(
    harness: EngineHarness, client: str, provider: str, pieces: Sequence[str], *, arguments: bool = False
) -> bytes:
    harness.outbound.script = [(200, list(answer_events(provider, pieces, arguments=arguments)))]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect=client))
    assert answer.stream is not None, answer.body
    return b"".join([block async for block in answer.stream])


async def whole(harness: EngineHarness, client: str, provider: str, text: str, *, arguments: bool = False) -> Any:
    harness.outbound.script = [(200, [whole_answer(provider, text, arguments=arguments)])]
    answer = await harness.engine.answer(harness.request(QUESTION, dialect=client))
    assert answer.status == 200, answer.body
    return text_of_whole_answer(client, answer.body, arguments=arguments)


def cut(text: str, places: Sequence[int]) -> list[str]:
    marks = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(marks)]


SLOW = settings(
    max_examples=25,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize(("client", "kind", "provider"), ROUTES)
@given(words=st.lists(PIECES, max_size=12), places=st.lists(st.integers(0, 400), max_size=40))
@SLOW
async def test_a_stream_has_the_text_of_the_whole_answer(
    client: str, kind: str, provider: str, words: list[str], places: list[int]
) -> None:
    text = " ".join(words)
    harness = engine(kind)
    expected = await whole(harness, client, provider, text)
    raw = await streamed(harness, client, provider, cut(text, places))
    assert text_of_stream(client, raw, arguments=False) == expected
    assert CARDS[0] not in expected


@pytest.mark.parametrize(("client", "kind", "provider"), ROUTES)
@given(words=st.lists(PIECES, max_size=8), number=st.booleans(), places=st.lists(st.integers(0, 400), max_size=40))
@SLOW
async def test_arguments_of_tools_are_still_json_with_the_same_text(
    client: str, kind: str, provider: str, words: list[str], number: bool, places: list[int]
) -> None:
    values: dict[str, Any] = {"text": " ".join(words), "n": 1, "ok": True}
    if number:
        values["card"] = 4111111111111111
    text = json.dumps(values, separators=(",", ":"))
    harness = engine(kind)
    expected = await whole(harness, client, provider, text, arguments=True)
    raw = await streamed(harness, client, provider, cut(text, places), arguments=True)
    message = text_of_stream(client, raw, arguments=True)
    assert json.loads(message) == (json.loads(expected) if isinstance(expected, str) else expected)
    assert "4111111111111111" not in message


@pytest.mark.parametrize(("client", "kind", "provider"), ROUTES)
@given(
    before=st.lists(WORDS, max_size=6),
    after=st.lists(WORDS, max_size=6),
    places=st.lists(st.integers(0, 400), max_size=40),
)
@SLOW
async def test_no_text_is_sent_from_a_blocked_match_on(
    client: str, kind: str, provider: str, before: list[str], after: list[str], places: list[int]
) -> None:
    blocked = DlpRuleRecord(
        id="r", name="x", detector_type="regex", entity_type="project", action="block", pattern="PRJ-[0-9]{4}"
    )
    head = " ".join([*before, ""])
    harness = engine(kind, blocked)
    # The second match may be released together with the first one.
    text = " ".join([f"{head}PRJ-1234", *after, "PRJ-5678", "bye"])
    raw = await streamed(harness, client, provider, cut(text, places))
    message = text_of_stream(client, raw, arguments=False)
    assert head.startswith(message.rstrip())
    assert b"PRJ" not in raw
    assert b"dlp_violation" in raw
    assert b'"dlp_action":"BLOCK"' in raw
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.dlp_action) == ("refused", "BLOCK")


async def test_unchanged_events_are_sent_with_their_original_bytes() -> None:
    harness = engine("openai_compatible")
    pieces = ["Hello ", "there, ", "how ", "are ", "you?"]
    sent = b"".join(openai(pieces, arguments=False)).replace(b'"model": "m"', b'"model": "one/m"')
    assert await streamed(harness, "openai_chat", "openai_chat", pieces) == sent


async def test_a_held_stream_detects_values_that_need_the_whole_text() -> None:
    harness = engine("openai_compatible", stream_mode="hold")
    hidden = "NDI0MiA0MjQyIDQyNDIgNDI0Mg=="
    raw = await streamed(harness, "openai_chat", "openai_chat", cut(f"card {hidden} ok", range(0, 40, 3)))
    assert text_of_stream("openai_chat", raw, arguments=False) == "card [CREDIT_CARD_1] ok"


async def test_no_more_text_is_held_back_than_the_length_of_a_match() -> None:
    """No released block of prose is longer than the window of held back text."""
    harness = engine("openai_compatible")
    prose = "Revenue grew well in the third quarter, and the team plans to hire in Berlin; costs stayed flat. " * 20
    pieces = [prose[at : at + 7] for at in range(0, len(prose), 7)]
    harness.outbound.script = [(200, list(openai(pieces, arguments=False)))]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect="openai_chat"))
    assert answer.stream is not None
    blocks = [block async for block in answer.stream]
    arrived = [text_of_stream("openai_chat", block, arguments=False) for block in blocks]
    assert "".join(arrived) == prose
    # No block is larger than the window; otherwise earlier text would have waited longer.
    assert max(map(len, arrived)) <= 320
    assert len(arrived) > len(prose) / 320
