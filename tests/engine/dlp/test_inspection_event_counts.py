"""The DLP events of a call report the actions that were really taken, for every form in which texts arrive."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.dlp.streams.test_stream_shapes import (
    CHAT,
    DONE,
    MESSAGES,
    TEXT,
    chunk,
    delta,
    event,
    message,
    texts,
)
from tests.engine.dlp.test_streams import (
    QUESTION,
    ROUTES,
    answer_events,
    engine,
    text_of_stream,
    text_of_whole_answer,
    whole_answer,
)
from tests.support.engine import EngineHarness

from gatehouse.engine.dlp.inspection import SEVERITY
from gatehouse.engine.records.outcome import DlpEvent
from gatehouse.foundation.outbound import BrokenOff

#: Values by entity type. No value is a part of another one.
VALUES = {
    "credit_card": ("4111 1111 1111 1111", "5555 5555 5555 4444"),
    "email": ("anna@example.com", "bob.meier@example.org"),
    "aws_access_key": ("AKIA" + "Z7Q2MXR4TNVB5KLP", "AKIA" + "Q3WD7HRM2XKTB6NV"),
    "project": ("PRJ-1234", "PRJ-5678"),
}
OF_TYPE = {value: entity_type for entity_type, values in VALUES.items() for value in values}
WORDS = (" and then ", " for you. Then ", " is it, or\nmaybe ", " \u4f60\u597d goes with ", " caf\u00e9 has ")
#: None means that no rule applies. The platform has no rule for the type `project`.
ACTIONS = ("redact", "log_only", "block")
LABEL = re.compile(r"\[([A-Z_]+)_(\d+)\]")
STATUS = {"redact": "redacted", "log_only": "logged", "block": "blocked"}
SETTINGS = settings(
    max_examples=10,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

Actions = dict[str, str | None]


class Text(NamedTuple):
    """Words and values in turn, and the positions at which the text is cut into pieces."""

    tokens: tuple[str, ...]
    cuts: tuple[int, ...] = ()

    @property
    def pieces(self) -> list[str]:
        whole = "".join(self.tokens)
        marks = sorted({0, len(whole), *(cut % len(whole) for cut in self.cuts)})
        return [whole[start:end] for start, end in pairwise(marks)]


@st.composite
def texts_with_values(draw: st.DrawFn) -> Text:
    values = draw(st.lists(st.sampled_from(sorted(OF_TYPE)), max_size=4))
    tokens = ["Well,"]
    for value in values:
        tokens += [draw(st.sampled_from(WORDS)), value]
    tokens.append(draw(st.sampled_from(WORDS)) * draw(st.integers(1, 8)))
    return Text(tuple(tokens), tuple(draw(st.lists(st.integers(0, 400), max_size=25))))


ACTIONS_BY_TYPE = st.fixed_dictionaries(
    {
        "credit_card": st.sampled_from(ACTIONS),
        "email": st.sampled_from(ACTIONS[:2]),
        "aws_access_key": st.sampled_from(ACTIONS[:2]),
        "project": st.sampled_from((None, *ACTIONS)),
    }
)


def engine_of(actions: Actions, kind: str, **options: Any) -> EngineHarness:
    patterns = {"project": {"pattern": "PRJ-[0-9]{4}"}}
    rules = [
        rule(entity_type, action, id=f"r-{entity_type}", **patterns.get(entity_type, {}))
        for entity_type, action in actions.items()
        if action is not None
    ]
    return engine(kind, *rules, **options)


class Expected(NamedTuple):
    """The expected output of a text. `shown` is the whole output, with labels without numbers; `until` is the position
    at which a value blocks."""

    shown: str
    blocks: bool
    values: list[str]
    logged: Counter[str]


def expected(tokens: Sequence[str], actions: Actions) -> Expected:
    shown, values, logged = "", [], Counter[str]()
    for token in tokens:
        entity_type = OF_TYPE.get(token)
        action = actions.get(entity_type or "")
        if action == "block":
            return Expected(shown, True, values, logged)
        if action == "redact":
            assert entity_type is not None
            shown += f"[{entity_type.upper()}]"
            values.append(token)
        else:
            shown += token
            if action == "log_only" and entity_type is not None:
                logged[entity_type] += 1
    return Expected(shown, False, values, logged)


def sent_of(text: Text, characters: int) -> tuple[list[str], str]:
    """Return the tokens that are completely within the first `characters`, and the part of the next token."""
    tokens: list[str] = []
    for token in text.tokens:
        if characters < len(token):
            return tokens, token[:characters]
        tokens.append(token)
        characters -= len(token)
    return tokens, ""


class SentTexts:
    """The sent parts of several texts, compared with the texts."""

    def __init__(self, actions: Actions) -> None:
        self.actions = actions
        self.labels: Counter[str] = Counter()
        #: the entity types whose values must not be sent
        self.kept = {entity_type for entity_type, action in actions.items() if action in {"redact", "block"}}
        self.logged: Counter[str] = Counter()
        self.blocks = False
        #: whether the text ended within a token; a part of a value may be a value too, such as `anna@example.co`
        self.breaks_off = False
        self._values: dict[str, str] = {}

    def compare(self, tokens: Sequence[str], rest: str, out: str, *, is_all: bool) -> None:
        """Compare the output with the tokens. `rest` is the beginning of a token at which the text ended. With
        `is_all`, nothing prevented the text from being sent to its end."""
        should = expected(tokens, self.actions)
        self.blocks |= should.blocks
        self.logged += should.logged
        self.breaks_off |= bool(rest)
        shown = LABEL.sub(r"[\1]", out)
        if is_all and not should.blocks:
            assert shown in {should.shown + rest, f"{should.shown}[EMAIL]"}
        else:
            assert (should.shown + ("" if should.blocks else rest)).startswith(
                shown
            ) or shown == f"{should.shown}[EMAIL]"
        for result, value in zip(LABEL.finditer(out), [*should.values, rest], strict=False):
            self.labels[result[1].lower()] += 1
            # The same value must have the same label, and different values different labels.
            assert self._values.setdefault(result[0], value) == value
        assert len(set(self._values.values())) == len(self._values)

    def check_kept(self, texts: Sequence[str]) -> None:
        for value, entity_type in OF_TYPE.items():
            assert entity_type not in self.kept or not any(value in text for text in texts)

    def check(self, events: Sequence[DlpEvent], direction: str, action: str | None, *, is_all: bool) -> None:
        counts: dict[str, Counter[str]] = {action: Counter() for action in ACTIONS}
        for dlp_event in events:
            assert (dlp_event.direction, dlp_event.detector_type, dlp_event.rule_id) == (
                direction,
                "regex",
                f"r-{dlp_event.entity_type}",
            )
            assert dlp_event.action == self.actions[dlp_event.entity_type]
            assert (dlp_event.status, dlp_event.severity) == (STATUS[dlp_event.action], SEVERITY[dlp_event.action])
            counts[dlp_event.action][dlp_event.entity_type] += dlp_event.match_count
        if is_all and not self.blocks:
            assert counts["redact"] == self.labels
            assert counts["log_only"] == self.logged or (self.breaks_off and counts["log_only"] >= self.logged)
            assert not counts["block"]
            assert action == ("REDACT" if self.labels else "ALLOW")
        else:
            assert counts["redact"] >= self.labels
        if self.blocks and is_all:
            assert counts["block"]
            assert action == "BLOCK"


class Place(NamedTuple):
    """A position of a text in a stream: the event of a piece, and where a client reads the pieces. `is_json`: the text
    is within JSON. `is_whole`: it arrives in one event."""

    piece: Callable[[str], bytes]
    paths: tuple[str, ...]
    is_json: bool = False
    is_whole: bool = False
    #: the event of the text's first piece, if it differs
    first: Callable[[str], bytes] | None = None


class Shape(NamedTuple):
    dialect: str
    places: tuple[Place, ...]
    begin: tuple[bytes, ...]
    end: tuple[bytes, ...]


def of_choice(path: str, fields: Callable[[str], dict[str, Any]], index: int = 0, **more: Any) -> Place:
    return Place(lambda text: chunk(delta(index, **fields(text))), (f".choices{index}.delta.{path}",), **more)


def arguments_of(index: int) -> Place:
    def fields(text: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}

    return of_choice(f"tool_calls{index}.function.arguments", fields, is_json=True)


def chat(*places: Place, finish: int = 1) -> Shape:
    return Shape(CHAT, places, (), (*(chunk(delta(index, "stop")) for index in range(finish)), DONE))


CONTENT = of_choice("content", lambda text: {"content": text})
REASONING = of_choice("reasoning_content", lambda text: {"reasoning_content": text})


def of_block(kind: str, field: str, index: int = 0, **more: Any) -> Place:
    def piece(text: str) -> bytes:
        return event("content_block_delta", index=index, delta={"type": kind, field: text})

    return Place(piece, (f"{index}.delta.{field}",), **more)


def blocks(*places: Place, starts: Sequence[dict[str, Any]] = (TEXT,)) -> Shape:
    whole = message()
    return Shape(
        MESSAGES,
        places,
        (whole[0], *(event("content_block_start", index=n, content_block=start) for n, start in enumerate(starts))),
        (*(event("content_block_stop", index=n) for n in range(len(starts))), *whole[1:]),
    )


SHAPES: dict[str, Shape] = {
    "content": chat(CONTENT),
    "a function call of old": chat(
        of_choice("function_call.arguments", lambda text: {"function_call": {"arguments": text}}, is_json=True)
    ),
    "arguments of a tool": chat(arguments_of(0)),
    "two tools": chat(arguments_of(0), arguments_of(1)),
    "a tool of one's own": chat(
        of_choice("tool_calls0.custom.input", lambda text: {"tool_calls": [{"index": 0, "custom": {"input": text}}]})
    ),
    "parts of content": chat(
        of_choice(
            "content.thinking.text",
            lambda text: {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]},
        )
    ),
    "details of reasoning": chat(
        of_choice(
            "reasoning_details0.text",
            lambda text: {"reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]},
        )
    ),
    "reasoning beside content": chat(REASONING, CONTENT),
    "a refusal": chat(of_choice("refusal", lambda text: {"refusal": text})),
    "choices": chat(CONTENT, of_choice("content", lambda text: {"content": text}, 1), finish=2),
    "content beside arguments": chat(CONTENT, arguments_of(0)),
    "an empty reason to finish": chat(
        CONTENT._replace(piece=lambda text: chunk(delta(0, "", content=text)))
    ),
    "probabilities of tokens": chat(
        CONTENT._replace(
            piece=lambda text: chunk({**delta(0, content=text), "logprobs": {"content": [{"token": text}]}})
        )
    ),
    "a message beside the delta": chat(
        CONTENT,
        Place(
            lambda text: chunk({**delta(0), "message": {"role": "assistant", "content": text}}),
            (".choices0.message.content",), is_whole=True,
        ),
    ),
    "a field beside the choices": chat(
        CONTENT, Place(lambda text: chunk(delta(0), citations=[text]), (".citations",), is_whole=True)
    ),
    "an object beside the delta": chat(
        CONTENT,
        Place(lambda text: chunk({**delta(0), "found": {"a": text}}), (".choices0.found.a",), is_whole=True),
    ),
    "text": blocks(of_block("text_delta", "text")),
    "thinking": blocks(
        of_block("thinking_delta", "thinking"), starts=({"type": "thinking", "thinking": ""},)
    ),
    "a tool's input": blocks(
        of_block("input_json_delta", "partial_json", is_json=True),
        starts=({"type": "tool_use", "id": "t", "name": "f", "input": {}},),
    ),
    "blocks in turn": blocks(
        of_block("text_delta", "text"), of_block("text_delta", "text", 1), starts=(TEXT, TEXT)
    ),
    "an unknown kind of delta": blocks(of_block("new_delta", "text")),
    "a citation": blocks(
        of_block("text_delta", "text"),
        Place(
            lambda text: event(
                "content_block_delta", index=0,
                delta={"type": "citations_delta", "citation": {"type": "c", "cited_text": text}},
            ),
            ("0.delta.citation.cited_text",), is_whole=True,
        ),
    ),
    "an unknown event": blocks(
        of_block("text_delta", "text"),
        Place(lambda text: event("news", text=text), (".text",), is_whole=True),
    ),
    "a block that begins with text": Shape(
        MESSAGES,
        (
            of_block("text_delta", "text")._replace(
                paths=("0.content_block.text", "0.delta.text"),
                first=lambda text: event(
                    "content_block_start", index=0, content_block={"type": "text", "text": text}
                ),
            ),
        ),
        (message()[0],),
        (event("content_block_stop", index=0), *message()[1:]),
    ),
    "a tool's input from the start": Shape(
        MESSAGES,
        (
            Place(
                lambda text: event(
                    "content_block_start", index=0,
                    content_block={"type": "tool_use", "id": "t", "name": "f", "input": {"a": text}},
                ),
                ("0.content_block.input.a",), is_whole=True,
            ),
        ),
        (message()[0],),
        (event("content_block_stop", index=0), *message()[1:]),
    ),
}  # fmt: skip

FRAMINGS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "as sent": lambda item: item,
    "one block": lambda item: [b"".join(item)],
    "byte by byte": lambda item: [bytes([byte]) for byte in b"".join(item)],
    "CRLF": lambda item: [event.replace(b"\n", b"\r\n") for event in item],
    "ids of events": lambda item: [b"id: 1\n" + event for event in item],
    "data over two lines": lambda item: [event.replace(b', "choices"', b',\ndata: "choices"') for event in item],
    "comments between": lambda item: [b": ping\n\n" + event for event in item],
    "blocks of 200 bytes": lambda item: [b"".join(item)[at : at + 200] for at in range(0, len(b"".join(item)), 200)],
}
#: How a stream ends: completely, truncated, with an error, or because the client leaves.
ENDINGS = ("whole", "whole", "truncated", "error", "left")


class Written(NamedTuple):
    """The events, and for each event the number of characters of each text in it."""

    events: list[bytes]
    sizes: list[list[int]]


def written(shape: Shape, contents: Sequence[Text], turns: Sequence[int]) -> Written:
    """Return the pieces of all texts in alternation."""
    waiting = []
    for place, text in zip(shape.places, contents, strict=True):
        pieces = ["".join(text.tokens)] if place.is_whole else text.pieces
        waiting.append([(place, piece, number == 0) for number, piece in enumerate(pieces)])
    nothing = [0] * len(contents)
    events, sizes = list(shape.begin), [nothing for _ in shape.begin]
    for number, place in enumerate(shape.places):
        if place.is_json:
            events.append(place.piece('{"a":"'))
            sizes.append(nothing)
            waiting[number].append((place, '"}', False))
    turn = iter(turns)
    while any(waiting):
        number = next(turn, 0) % len(waiting)
        if not waiting[number]:
            number = next(n for n, pieces in enumerate(waiting) if pieces)
        place, piece, is_first = waiting[number].pop(0)
        events.append((place.first if is_first and place.first is not None else place.piece)(piece_of(place, piece)))
        is_text = not (place.is_json and not waiting[number])
        sizes.append([len(piece) * is_text if n == number else 0 for n in range(len(waiting))])
    return Written([*events, *shape.end], [*sizes, *(nothing for _ in shape.end)])


def piece_of(place: Place, piece: str) -> str:
    """Return the piece as it is written within JSON, without the end of the JSON."""
    return json.dumps(piece, ensure_ascii=False)[1:-1] if place.is_json and piece != '"}' else piece


def read_at(place: Place, joined: dict[str, str]) -> str:
    text = "".join(joined.get(path, "") for path in place.paths)
    if not place.is_json:
        return text
    text = text.removeprefix('{"a":"')
    return str(json.loads(f'"{text.removesuffix(chr(34) + "}")}"'))


@pytest.mark.parametrize("name", SHAPES)
@given(data=st.data())
@SETTINGS
async def test_events_of_a_stream_match_the_sent_text(name: str, data: st.DataObject) -> None:
    shape = SHAPES[name]
    actions = data.draw(ACTIONS_BY_TYPE, "actions")
    contents = [data.draw(texts_with_values(), "text") for _ in shape.places]
    stream = written(shape, contents, data.draw(st.lists(st.integers(0, 3), max_size=60), "turns"))
    mode = data.draw(st.sampled_from(("window", "window", "hold")), "mode")
    framing = FRAMINGS[data.draw(st.sampled_from(sorted(FRAMINGS)), "framing")]
    ending = data.draw(st.sampled_from(ENDINGS), "ending")
    count = len(stream.events)
    if ending in {"truncated", "error"}:
        count = data.draw(st.integers(len(shape.begin) + 1, count), "events")
    pieces: list[bytes | Exception] = [*framing(stream.events[:count])]
    if ending == "error":
        pieces.append(BrokenOff())
    kind = "openai_compatible" if shape.dialect == CHAT else "anthropic"
    harness = engine_of(actions, kind, stream_mode=mode)
    harness.outbound.script = [(200, pieces)]
    answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect=shape.dialect))
    assert answer.stream is not None, answer.body
    leaves_after = data.draw(st.integers(1, 12), "blocks") if ending == "left" else None
    raw = b""
    blocks_read = 0
    async for block in answer.stream:
        raw += block
        blocks_read += 1
        if blocks_read == leaves_after:
            break
    await answer.stream.aclose()  # type: ignore[attr-defined]
    [outcome] = harness.outcomes
    is_all = outcome.outcome != "cancelled" and ending != "left"
    seen = SentTexts(actions)
    joined = texts(raw)
    seen.check_kept([raw.decode(), *joined.values()])
    for number, (place, text) in enumerate(zip(shape.places, contents, strict=True)):
        tokens, rest = sent_of(text, sum(sizes[number] for sizes in stream.sizes[:count]))
        blocked = outcome.dlp_action == "BLOCK"
        seen.compare(tokens, rest, read_at(place, joined), is_all=is_all and not blocked)
    seen.check(outcome.dlp_events, "output", outcome.dlp_action, is_all=is_all)
    if outcome.outcome == "refused":
        assert outcome.dlp_action == "BLOCK"


@pytest.mark.parametrize("arguments", [False, True], ids=["text", "arguments"])
@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("client", "kind", "provider"), ROUTES)
@given(text=texts_with_values(), actions=ACTIONS_BY_TYPE)
@SETTINGS
async def test_events_of_an_answer_match_the_sent_text_in_the_clients_dialect(
    client: str, kind: str, provider: str, is_streamed: bool, arguments: bool, text: Text, actions: Actions
) -> None:
    harness = engine_of(actions, kind)
    content = "".join(text.tokens)
    if is_streamed:
        pieces = ['{"a":"', *(json.dumps(piece)[1:-1] for piece in text.pieces), '"}'] if arguments else text.pieces
        harness.outbound.script = [(200, list(answer_events(provider, pieces, arguments=arguments)))]
        answer = await harness.engine.answer(harness.request({**QUESTION, "stream": True}, dialect=client))
        assert answer.stream is not None, answer.body
        out: Any = text_of_stream(client, b"".join([block async for block in answer.stream]), arguments=arguments)
    else:
        body = json.dumps({"a": content}) if arguments else content
        harness.outbound.script = [(200, [whole_answer(provider, body, arguments=arguments)])]
        answer = await harness.engine.answer(harness.request(QUESTION, dialect=client))
        out = text_of_whole_answer(client, answer.body, arguments=arguments) if answer.status == 200 else ""
    [outcome] = harness.outcomes
    is_blocked = outcome.dlp_action == "BLOCK"
    if arguments:
        if is_blocked and isinstance(out, str):
            ended = out.removeprefix('{"a":"')
            out = json.loads(f'"{ended}"') if ended else ""
        else:
            out = (json.loads(out) if isinstance(out, str) else out)["a"]
    seen = SentTexts(actions)
    seen.compare(text.tokens, "", out, is_all=True)
    seen.check(outcome.dlp_events, "output", outcome.dlp_action, is_all=True)


REQUESTS: dict[str, tuple[str, Callable[[str], dict[str, Any]], Callable[[dict[str, Any]], str]]] = {
    "a message": (
        CHAT,
        lambda text: {"messages": [{"role": "user", "content": text}]},
        lambda body: body["messages"][0]["content"],
    ),
    "a part": (
        CHAT,
        lambda text: {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]},
        lambda body: body["messages"][0]["content"][0]["text"],
    ),
    "arguments": (
        CHAT,
        lambda text: {
            "messages": [
                {"role": "assistant", "tool_calls": [
                    {"id": "t", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": text})}}
                ]}
            ]
        },
        lambda body: json.loads(body["messages"][0]["tool_calls"][0]["function"]["arguments"])["a"],
    ),
    "a tool's result": (
        CHAT,
        lambda text: {"messages": [{"role": "tool", "tool_call_id": "t", "content": json.dumps({"a": text})}]},
        lambda body: json.loads(body["messages"][0]["content"])["a"],
    ),
    "Anthropic's system prompt": (
        MESSAGES,
        lambda text: {"system": text, "messages": [{"role": "user", "content": "hi"}]},
        lambda body: body["system"],
    ),
    "a tool's input": (
        MESSAGES,
        lambda text: {
            "messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": text}}]}
            ]
        },
        lambda body: body["messages"][0]["content"][0]["input"]["a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
@given(text=texts_with_values(), actions=ACTIONS_BY_TYPE)
@SETTINGS
async def test_events_of_a_request_match_the_text_that_the_provider_received(
    name: str, text: Text, actions: Actions
) -> None:
    dialect, body, content_of = REQUESTS[name]
    kind = "openai_compatible" if dialect == CHAT else "anthropic"
    harness = engine_of(actions, kind)
    harness.outbound.script = [(200, [whole_answer(dialect, "fine", arguments=False)])]
    request = {"model": "one/m", "max_tokens": 9, **body("".join(text.tokens))}
    answer = await harness.engine.answer(harness.request(request, dialect=dialect))
    seen = SentTexts(actions)
    [outcome] = harness.outcomes
    if outcome.dlp_action == "BLOCK":
        assert (answer.status, harness.outbound.sent) == (403, [])
        assert not any(value in answer.body.decode() for value in OF_TYPE)
        seen.compare(text.tokens, "", "", is_all=True)
        assert seen.blocks
    else:
        seen.compare(text.tokens, "", content_of(json.loads(harness.outbound.sent[0].body)), is_all=True)
    seen.check(outcome.dlp_events, "input", outcome.dlp_action, is_all=True)
