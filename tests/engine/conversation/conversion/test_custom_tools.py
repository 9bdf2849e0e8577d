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


@given(
    st.lists(st.one_of(st.text(max_size=3), st.sampled_from(["\\", "\\u", "\\ud83d", "\\ude00", '"', "00", "\n"]))),
    st.integers(1, 15),
)
def test_arguments_in_pieces_are_read_as_whole_ones(pieces: list[str], size: int):
    for beginning in ("", '{"input": "', " " * 60 + '{"input": "'):
        arguments = beginning + "".join(pieces)
        assert read_in_pieces(arguments, size)[0] == input_of(arguments)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("escaped", "expected"),
    [
        ("abc \\udc00 def", "abc \ufffd def"),
        ("abc \\ud83d def", "abc \ufffd def"),
        ("\\ud83d\\ud83d\\ude00", "\ufffd😀"),
        ("\\ud83d\\u0041\\ud83d", "\ufffdA\ufffd"),
        ("\\ud83d\\n\\ud83d\\u00x", "\ufffd\n\ufffd\\u00x"),
        ("a\nb\tc", "a\nb\tc"),
        ("grep '\\d+' \\u12 \\x41", "grep '\\d+' \\u12 \\x41"),
    ],
)
def test_text_that_json_does_not_permit_is_kept(escaped: str, expected: str, size: int):
    for end in ('"}', '"', '", "other": 5}'):
        assert read_in_pieces(f'{{"input":"{escaped}{end}', size)[0] == expected
        assert input_of(f'{{"input":"{escaped}{end}') == expected


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("cut", ["", "\\", "\\u", "\\u00f", "\\ud83d", "\\ud83d\\ude0"])
def test_arguments_that_end_at_the_output_limit_give_the_beginning(cut: str, size: int):
    arguments = '{"input":"abc' + cut
    assert input_of(arguments) == "abc"
    assert read_in_pieces(arguments, size)[0] == "abc"


def test_the_text_so_far_is_not_copied_for_each_further_piece():
    reader = InputReader()
    reader.push('{"input":"')
    for _ in range(1000):
        reader.push("abcd")
    # The pieces are not joined, and the raw arguments are not kept in addition.
    assert max(map(len, reader._input)) == 4
    assert sum(map(len, reader._arguments)) + len(reader._pending) < 100
    assert reader.text == "abcd" * 1000


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_escapes_are_decoded_across_pieces(size: int):
    escaped = '  { "input" : "' + PATCH.encode("unicode_escape").decode().replace('"', '\\"').replace("\\x", "\\u00")
    arguments = msgspec.json.encode({"input": PATCH}).decode().replace("😀", "\\ud83d\\ude00").replace("ü", "\\u00fc")
    assert read_in_pieces(arguments, size)[0] == PATCH
    # If a stream ends early, the part that has arrived is returned.
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
