"""JSON texts, and JSON in their strings, are still valid JSON after values in them were replaced."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.dlp.scenarios.test_requests import ask, rule, sent, user
from tests.engine.dlp.test_streams import engine, whole, whole_answer

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.body import apply_replacements
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_texts.replacement import is_json

BUILT = Matcher(BUILT_IN)
LABEL = "[VALUE_1]"
CARD = 4111111111111111

VALUES = (
    *(one.examples[0] for one in BUILT_IN if one.examples),
    "password: hunter2!x",
    "password=hunter2!x",
    "Server=db;User Id=sa;Password=hunter2!x;",
    "machine host login me password pass123",
    CARD,
    2.5,
    True,
    None,
    "",
)
EDGES = ("", "a ", "\n", "\t", '"', "\\", "é", "}", "C:\\new")
NAMES = ("a", "password", "api_key", "card", "an é")

values = st.tuples(st.sampled_from(EDGES), st.sampled_from(VALUES), st.sampled_from(EDGES)).map(
    lambda parts: f"{parts[0]}{parts[1]}{parts[2]}" if isinstance(parts[1], str) else parts[1]
)


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        | st.tuples(inner, st.booleans()).map(lambda part: json.dumps(part[0], ensure_ascii=part[1]))
    )


nested = st.recursive(values, around, max_leaves=8)
texts = st.one_of(st.lists(nested, max_size=3), st.dictionaries(st.sampled_from(NAMES), nested, max_size=3)).map(
    json.dumps
)
Place = tuple[int, int]


def redacted(text: str, places: list[Place]) -> str:
    """Return the text with labels in these ranges. Overlapping ranges get one label."""
    merged: list[Place] = []
    for start, end in sorted(places):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return apply_replacements(Slot({}, "content", text), [Replacement(start, end, LABEL) for start, end in merged])


def is_alike(value: Any, other: Any, levels: int = 3) -> bool:
    """Return whether lists, objects and JSON in strings are unchanged except for their values and names."""
    if isinstance(value, dict):
        # Two different names may have become the same label.
        return isinstance(other, dict) and len(other) <= len(value)
    if isinstance(value, list):
        return isinstance(other, list) and len(value) == len(other) and all(map(is_alike, value, other))
    if isinstance(value, str) and levels and is_json(value):
        return is_alike(json.loads(value), json.loads(other), levels - 1)
    return True


@settings(max_examples=300, deadline=None)
@given(texts)
@example(json.dumps({"log": json.dumps({"password": "hunter2", "card": CARD})}))
@example(json.dumps(["password: hunter2!x\n", "b"]))
@example(json.dumps({"password": "hunter2\\"}))
def test_replacing_pattern_matches_keeps_json_valid(text: str) -> None:
    results = [(f.start, f.end) for f in BUILT.scan(text)]
    assert is_alike(json.loads(text), json.loads(redacted(text, results)))


@settings(max_examples=300, deadline=None)
@given(texts, st.lists(st.tuples(st.integers(0, 200), st.integers(1, 30)), max_size=6))
@example('["a\\\\\\"b"]', [(4, 4)])
def test_replacing_any_ranges_keeps_json_valid(text: str, places: list[Place]) -> None:
    """The findings of other tiers may begin and end anywhere."""
    within = [(start, start + length) for start, length in places if start + length <= len(text)]
    assert is_alike(json.loads(text), json.loads(redacted(text, within)))


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ('{"card": 4111111111111111}', "4111111111111111", '{"card": "[VALUE_1]"}'),
        (json.dumps({"a": '{"b": 4111}'}), "4111", json.dumps({"a": '{"b": "[VALUE_1]"}'})),
        (json.dumps({"a": '["b", "c"]'}), 'b\\", \\"c', json.dumps({"a": '["[VALUE_1]", "[VALUE_1]"]'})),
        ("[see 4111", "4111", "[see [VALUE_1]"),
        ("4111", "4111", "[VALUE_1]"),
        ("[4111] [4111", "4111", "[[VALUE_1]] [4111"),
        ('{"a": NaN, "b": 4111}', "4111", '{"a": NaN, "b": "[VALUE_1]"}'),
        ('{"a": "\\ud800", "b": 4111}', "4111", '{"a": "\\ud800", "b": "[VALUE_1]"}'),
        ("[" * 5000 + "4111", "4111", "[" * 5000 + "[VALUE_1]"),
        ("[" * 5000 + "4111" + "]" * 5000, "4111", "[" * 5000 + "[VALUE_1]" + "]" * 5000),
    ],
)
def test_a_label_has_the_form_of_the_value_it_replaces(text: str, value: str, expected: str) -> None:
    start = text.index(value)
    assert redacted(text, [(start, start + len(value))]) == expected


async def test_a_result_of_a_tool_with_a_bare_number_is_still_json() -> None:
    harness = engine("openai_compatible")
    harness.outbound.script = [(200, [whole_answer("openai_chat", "fine", arguments=False)])]
    result = {"role": "tool", "tool_call_id": "t", "content": json.dumps({"log": json.dumps({"card": CARD})})}
    await ask(harness, {"messages": [result]})
    content = json.loads(sent(harness)["messages"][0]["content"])
    assert json.loads(content["log"]) == {"card": "[CREDIT_CARD_1]"}


async def test_a_json_answer_is_still_json() -> None:
    harness = engine("openai_compatible")
    answer = await whole(harness, "openai_chat", "openai_chat", json.dumps({"card": CARD, "n": 1}))
    assert json.loads(answer) == {"card": "[CREDIT_CARD_1]", "n": 1}


async def test_a_value_with_a_line_break_is_restored_as_json() -> None:
    harness = engine("openai_compatible", rule("credit_card", "redact", reversible=True))
    harness.outbound.script = [(200, [whole_answer("openai_chat", '{"card": "[CREDIT_CARD_1]"}', arguments=False)])]
    _, body = await ask(harness, user("card 41111111\n11111111"))
    assert json.loads(body["choices"][0]["message"]["content"]) == {"card": "41111111\n11111111"}
