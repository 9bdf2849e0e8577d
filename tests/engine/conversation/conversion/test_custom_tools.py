"""Custom tools as functions: their inputs come back as plain text, whole and in pieces of any size."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.engine.conversation.conversion.custom_tools import InputReader, arguments_of, function_of, input_of

PATCH = '*** Begin Patch\n*** Update File: "a\\b.py"\n-\told\n+neü 😀\n*** End Patch'


def read_in_pieces(arguments: str, size: int) -> tuple[str, list[str]]:
    reader = InputReader()
    deltas = [reader.push(arguments[start : start + size]) for start in range(0, len(arguments), size)]
    deltas.append(reader.finish())
    assert "".join(deltas) == reader.text
    return reader.text, deltas


def test_a_grammar_is_described_in_the_parameter():
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: BEGIN hunk+ END"}
    tool = function_of("apply_patch", "Edits files.", grammar)
    assert (tool.name, tool.description) == ("apply_patch", "Edits files.")
    assert tool.parameters is not None
    assert tool.parameters["required"] == ["input"]
    assert "Lark grammar:\nstart: BEGIN hunk+ END" in tool.parameters["properties"]["input"]["description"]


def test_a_tool_without_a_grammar_takes_any_text():
    tool = function_of("exec", None, {"type": "text"})
    assert tool.parameters is not None
    assert "must match" not in tool.parameters["properties"]["input"]["description"]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 9))
def test_an_input_is_the_same_after_both_conversions(text: str, size: int):
    arguments = arguments_of(text)
    assert input_of(arguments) == text
    assert read_in_pieces(arguments, size)[0] == text


@given(st.text(max_size=40), st.integers(1, 5))
def test_arguments_in_pieces_read_as_whole_ones_or_as_their_beginning(arguments: str, size: int):
    read_in_pieces(arguments, size)
    read_in_pieces('{"input": "' + arguments, size)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_escapes_are_decoded_across_pieces(size: int):
    escaped = '  { "input" : "' + PATCH.encode("unicode_escape").decode().replace('"', '\\"').replace("\\x", "\\u00")
    arguments = msgspec.json.encode({"input": PATCH}).decode().replace("😀", "\\ud83d\\ude00").replace("ü", "\\u00fc")
    assert read_in_pieces(arguments, size)[0] == PATCH
    # A stream that ends early gives what has arrived.
    assert read_in_pieces(escaped, size)[0].startswith("*** Begin Patch\n")


def test_an_input_is_passed_on_before_its_end():
    _, deltas = read_in_pieces(arguments_of("a long patch of many words"), 4)
    assert len([delta for delta in deltas if delta]) > 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ""),
        ("{}", ""),
        ('"plain"', "plain"),
        ("*** Begin Patch", "*** Begin Patch"),
        ('{"patch": "x"}', '{"patch": "x"}'),
        ('{"reason": "because", "input": "x"}', "x"),
        ('{"input": 5}', '{"input": 5}'),
        ('{"input": "x", "reason": "because"}', "x"),
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_other_arguments_are_read_at_the_end(arguments: str, expected: str, size: int):
    assert input_of(arguments) == expected
    assert read_in_pieces(arguments, size)[0] == expected
