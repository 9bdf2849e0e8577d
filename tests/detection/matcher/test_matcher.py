"""Matcher: everything that each pattern finds by itself, in one pass, in whole texts and in slices."""

# ruff: noqa: RUF001 - look-alikes are among the texts

import base64
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.detection.matcher.patterns import ALL, CARD, KEY, NAMED, RUSSIAN, TAX, pattern

from gatehouse.detection import matching, scanning
from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import BadPattern, Matcher
from gatehouse.detection.pattern import Pattern, Shape
from gatehouse.detection.scanning import SLICE

SMALL = Matcher(ALL)
BUILT = Matcher(BUILT_IN)


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.id)
def test_all_patterns_together_find_what_each_finds_alone(one: Pattern) -> None:
    for text in (*one.examples, *one.counterexamples):
        if not text.isascii() or "\n" in text:
            continue
        together = {
            (f.start, f.end): f.score
            for f in BUILT.scan(text, decoded=False)
            if f.source == one.id and f.score >= one.threshold
        }
        assert together == {(span.start, span.end): span.score for span in matching.find(one, text)}


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="0123456789 -./AZaz:@\n'\"", max_size=80))
def test_numbers_of_every_form_are_found_as_by_each_pattern_alone(text: str) -> None:
    text = text.replace("\n", " \t")
    together = {(f.source, f.start, f.end): f.score for f in BUILT.scan(text, decoded=False)}
    alone: dict[tuple[str, int, int], float] = {}
    for one, shapes in COMPILED:
        for shape in shapes:
            for start, end, score in matching.spans(shape, text):
                alone[one.id, start, end] = max(score, alone.get((one.id, start, end), 0.0))
    assert together == alone


COMPILED = [(one, matching.compile_pattern(one)) for one in BUILT_IN]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("card 4111\u200b1111\u200b1111\u200b1111!", "4111\u200b1111\u200b1111\u200b1111"),
        ("card ４１１１-１１１１-１１１１-１１１１", "４１１１-１１１１-１１１１-１１１１"),
        ("card 41111111\n11111111", "41111111\n11111111"),
        ("card &#52;111111111111111", "&#52;111111111111111"),
        ("card %34%31%31%31111111111111", "%34%31%31%31111111111111"),
        ("card NDExMTExMTExMTExMTExMQ== ok", "NDExMTExMTExMTExMTExMQ=="),
        ("card %34%32%34%32%34%32%34%32%34%32%34%32%34%32%34%32!", "%34%32" * 8),
        ("card 34313131313131313131313131313131 ok", "34313131313131313131313131313131"),
    ],
)
def test_a_finding_is_where_the_caller_wrote_it(text: str, value: str) -> None:
    found = [f for f in SMALL.scan(text) if f.source == "card"]
    assert [text[f.start : f.end] for f in found] == [value]


def test_a_context_word_beside_an_encoded_value_counts() -> None:
    text = "tax " + base64.b64encode(b"12 345 678").decode()
    assert [f.source for f in Matcher((TAX,)).scan(text)] == ["tax"]


def test_what_is_whole_on_its_line_does_not_take_the_next_line_along() -> None:
    link = pattern("link", Shape(regex=r"https://[\w./]{1,60}", score=1.0, max_length=68))
    text = "see https://example.com/a1\nRT2 more"
    assert [text[f.start : f.end] for f in Matcher((link,)).scan(text)] == ["https://example.com/a1"]


def test_patterns_in_other_scripts_find_their_words() -> None:
    text = "Мой паспорт 4509 и АВ"
    assert [text[f.start : f.end] for f in Matcher((RUSSIAN,)).scan(text)] == ["4509"]


def test_only_the_group_named_value_is_the_finding() -> None:
    text = "about Project ZEUS today"
    assert [text[f.start : f.end] for f in Matcher((NAMED,)).scan(text)] == ["ZEUS"]


def test_from_a_position_on_what_stands_before_is_seen_and_not_found() -> None:
    text = "tax AKIAIOSFODNN7EXAMPLE 12 345 678 xAKIAIOSFODNN7EXAMPLE"
    found = Matcher((KEY, TAX)).scan(text, pos=len("tax AKIAIOSFODNN7EXAMPLE "))
    assert [(f.source, text[f.start : f.end]) for f in found] == [("tax", "12 345 678")]


def test_escapes_of_json_are_seen_through_only_in_json() -> None:
    text = r'{"n":"\u00341111111\u002d11111111"}'
    assert [f.source for f in SMALL.scan(text, decoded=False, json_escapes=True) if f.source == "card"] == ["card"]
    assert not [f for f in SMALL.scan(text, decoded=False) if f.source == "card"]


@pytest.mark.parametrize(
    "encode", [str, lambda s: base64.b64encode(s.encode()).decode(), lambda s: s.replace("-", "%2D")]
)
def test_values_at_every_place_of_a_long_text_are_found_in_slices(encode: object) -> None:
    assert callable(encode)
    value = encode("4111-1111-1111-1111")
    for place in (0, 10, SLICE - 30, SLICE - 5, SLICE, SLICE + 3, 3 * SLICE - 12):
        text = ("x y " * SLICE)[:place] + " " + value + " " + " y z" * 3000
        found = [f for part in SMALL.scan_in_slices(text) for f in part if f.source == "card"]
        assert [text[f.start : f.end] for f in found] == [value]


def test_values_within_a_long_base64_file_are_found_wherever_slices_fall() -> None:
    for before in (9_000, 9_001, 9_002, 12_287):
        text = base64.b64encode(b"a" * before + b" 4111-1111-1111-1111 " + b"b" * 9000).decode()
        found = [f for f in SMALL.scan("file: " + text) if f.source == "card"]
        assert len(found) == 1
        assert abs(found[0].start - 6 - before * 4 // 3) < 12


def test_several_matchers_over_one_text_find_what_each_finds() -> None:
    text = "AKIAIOSFODNN7EXAMPLE and 4111 1111 1111 1111"
    together = scanning.scan((Matcher((KEY,)), Matcher((CARD,))), text)
    assert together == sorted(Matcher((KEY,)).scan(text) + Matcher((CARD,)).scan(text), key=lambda f: f.start)


def test_a_regex_that_is_none_says_whose_and_why() -> None:
    with pytest.raises(BadPattern, match="missing") as refused:
        Matcher((pattern("broken", Shape(regex="(a", score=1.0, max_length=1)),))
    assert refused.value.pattern_id == "broken"


HOSTILE = {
    "one number": "1" * 60_000,
    "1.1.1.": "1.1." * 15_000,
    "a column": "1234567\n" * 7_500,
    "entities": "&#49;" * 12_000,
    "half entities": "&#49" * 15_000,
    "base64": "NDExMSAx" * 7_500,
    "percent": "%34" * 20_000,
    "zero width": "4\u200b" * 30_000,
    "nothing drawn": "\u200b" * 60_000,
    "look-alikes": "А1с " * 15_000,
    "openings": "-----BEGIN " * 5_500,
    "backslashes": "\\" * 60_000,
    "at signs": "a@" * 30_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_take_time_in_proportion(text: str) -> None:
    def seconds(part: str) -> float:
        best = 1e9
        for _ in range(3):
            started = process_time()
            SMALL.scan(part, json_escapes=True)
            best = min(best, process_time() - started)
        return best

    seconds(text[:1000])
    # Four times the text: sixteen times the time if it were quadratic.
    assert seconds(text) < 9 * max(seconds(text[: len(text) // 4]), 0.002)


def test_a_slice_of_a_long_text_is_short() -> None:
    """An event loop that takes a turn between slices lags by one of them."""
    text = "Some words, 12 of them, and 4111 1111 1111 1111 for user_1@example.com; " * 4000
    slices = list(SMALL.scan_in_slices(text))
    assert len(slices) >= len(text) // 8192
    # What is found is found slice by slice, not in one at the end.
    assert max(map(len, slices)) <= 8 * sum(map(len, slices)) / len(slices)
