"""The matcher finds in one pass everything that each pattern finds by itself, in whole texts and in slices."""

# ruff: noqa: RUF001 - look-alikes are among the texts

import base64
import json
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.detection.patterns import ALL, CARD, KEY, NAMED, RUSSIAN, TAX, pattern

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import BadPattern, Matcher
from gatehouse.detection.normalise import View
from gatehouse.detection.normalise import decoded as decoding
from gatehouse.detection.pattern import Pattern, Shape
from gatehouse.detection.scanning import texts
from gatehouse.detection.scanning.texts import MAX_SLICE_CHARACTERS
from gatehouse.detection.search import matching

SMALL = Matcher(ALL)
BUILT = Matcher(BUILT_IN)


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.id)
def test_all_patterns_together_find_what_each_single_one_finds(one: Pattern) -> None:
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
def test_numbers_of_every_form_are_found_as_by_single_patterns(text: str) -> None:
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
    results = [f for f in SMALL.scan(text) if f.source == "card"]
    assert [text[f.start : f.end] for f in results] == [value]


def test_a_context_word_beside_an_encoded_value_counts() -> None:
    text = "tax " + base64.b64encode(b"12 345 678").decode()
    assert [f.source for f in Matcher((TAX,)).scan(text)] == ["tax"]


def test_a_value_that_is_a_whole_line_does_not_include_the_next_line() -> None:
    link = pattern("link", Shape(regex=r"https://[\w./]{1,60}", score=1.0, max_length=68))
    text = "see https://example.com/a1\nRT2 more"
    assert [text[f.start : f.end] for f in Matcher((link,)).scan(text)] == ["https://example.com/a1"]


def test_a_number_within_a_refused_longer_number_is_found() -> None:
    text = "1234 4111 1111 1111 1111 5678"
    assert [text[f.start : f.end] for f in Matcher((CARD,)).scan(text)] == ["4111 1111 1111 1111"]


def test_patterns_that_read_underscores_differently_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="underscores"):
        Matcher((CARD, BUILT_IN[0]))


def test_patterns_in_other_scripts_find_their_words() -> None:
    text = "Мой паспорт 4509 и АВ"
    assert [text[f.start : f.end] for f in Matcher((RUSSIAN,)).scan(text)] == ["4509"]


def test_only_the_group_named_value_is_the_finding() -> None:
    text = "about Project ZEUS today"
    assert [text[f.start : f.end] for f in Matcher((NAMED,)).scan(text)] == ["ZEUS"]


def test_a_search_from_a_position_uses_earlier_text_only_as_context() -> None:
    text = "tax AKIAIOSFODNN7EXAMPLE 12 345 678 xAKIAIOSFODNN7EXAMPLE"
    findings = Matcher((KEY, TAX)).scan(text, pos=len("tax AKIAIOSFODNN7EXAMPLE "))
    assert [(f.source, text[f.start : f.end]) for f in findings] == [("tax", "12 345 678")]


@pytest.mark.parametrize("json_escapes", [True, False])
@pytest.mark.parametrize("decoded", [True, False])
def test_backslash_escapes_are_seen_through(*, decoded: bool, json_escapes: bool) -> None:
    text = r'{"n":"\u00341111111\u002d11111111"}'
    findings = SMALL.scan(text, decoded=decoded, json_escapes=json_escapes)
    assert [text[f.start : f.end] for f in findings if f.source == "card"] == [text[6:-2]]


NUMBER = "4111 1111 1111 1111"


@pytest.mark.parametrize("levels", range(1, 5))
@pytest.mark.parametrize(
    "written",
    [
        f"{NUMBER}",
        f"a\n{NUMBER}\nb",
        f"a\t{NUMBER}\tb",
        f'a"{NUMBER}"b',
        f"a\r\n{NUMBER}",
        f"\u20ac{NUMBER}\u20ac",
        f"a/{NUMBER}",
    ],
)
def test_a_value_in_json_within_a_string_is_found_at_its_own_place(written: str, levels: int) -> None:
    text = written
    for _ in range(levels):
        text = json.dumps({"rows": text})
    results = [text[f.start : f.end] for f in SMALL.scan(text) if f.source == "card"]
    assert results == [NUMBER]


@pytest.mark.parametrize("levels", range(1, 5))
@pytest.mark.parametrize(
    ("text", "value", "source"),
    [
        ("a\nrouting: 021000021\nb", "021000021", "us-routing-number"),
        ("a\ncard 42 4242424242 424242 12/27\nb", "4242424242 424242", "credit-card"),
        ("export RDS_PASSWORD=hunter2!x\nPORT=1", "hunter2!x", "stored-credential"),
        ("db.internal:5432:app:app:hunter2\n", "hunter2", "stored-credential"),
        ("a\ncurl -u admin:hunter2!x https://host\nb", "admin:hunter2!x", "authorization-header"),
    ],
)
def test_text_before_an_escape_counts_for_the_value_after_it(text: str, value: str, source: str, levels: int) -> None:
    for _ in range(levels):
        text = json.dumps({"rows": text})
    assert value in [text[f.start : f.end] for f in BUILT.scan(text) if f.source == source and f.score >= 0.5]


def test_an_escape_that_is_not_drawn_is_seen_through() -> None:
    text = r"a 41111111\u200b11111111 b"
    assert [text[f.start : f.end] for f in SMALL.scan(text) if f.source == "card"] == [text[2:-2]]


ANY_WORD = pattern("word", Shape(regex=r"[^\s\"']{8,40}", score=1.0, max_length=40))
DIGITS = pattern("digits", Shape(regex=r"\d{4}", score=1.0, max_length=4))


@pytest.mark.parametrize("decoded", [True, False])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"say \"password\"", "password"),
        (r"say \\\"password\\\"", "password"),
        (r"say \u0022password\u0022", r"password"),
        (r"a.\npassword", r"a.\npassword"),
        (r"\npassword\n", "password"),
        (r'"\npassword"', "password"),
    ],
)
def test_a_finding_has_no_parts_of_escapes(text: str, value: str, *, decoded: bool) -> None:
    findings = {text[f.start : f.end] for f in Matcher((ANY_WORD,)).scan(text, decoded=decoded)}
    assert value in findings
    for part in findings:
        assert not part.startswith(("n", '"', "u0022"))
        assert not part.endswith("\\")


def test_digits_within_an_escape_are_the_escape() -> None:
    text = r"caf\u1234 5678"
    assert [text[f.start : f.end] for f in Matcher((DIGITS,)).scan(text)] == [r"\u1234", "5678"]


def test_a_text_in_slices_shows_escaped_values_once() -> None:
    rows = "".join(f"row {number}\t{NUMBER}\n" for number in range(1000))
    text = json.dumps({"rows": rows})
    results = [text[f.start : f.end] for f in SMALL.scan(text) if f.source == "card"]
    assert results == [NUMBER] * 1000


ENCODERS = {
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64 of URLs": lambda data: base64.urlsafe_b64encode(data).decode(),
    "hex": bytes.hex,
    "hex in capitals": lambda data: data.hex().upper(),
}


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS.keys())
@pytest.mark.parametrize("before", ["", "x ", "xy ", "xyz ", "a/", "a-bc/", "data:text/plain;base64,"])
@pytest.mark.parametrize(("word", "charset"), [("row", "utf-8"), ("number für", "utf-8"), ("number für", "cp1252")])
def test_every_value_of_a_long_encoded_text_is_found_by_its_place(
    encode: Callable[[bytes], str], before: str, word: str, charset: str
) -> None:
    rows = "".join(f"{word} {number:04} {NUMBER} paid; " for number in range(400))
    text = f"{before}{encode(rows.encode(charset))} and so on"
    results = [f for f in SMALL.scan(text) if f.source == "card"]
    assert len(results) == 400
    assert all(f.end - f.start <= 44 for f in results)


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS.keys())
@pytest.mark.parametrize("levels", range(3))
def test_encoded_text_after_and_with_escapes_is_found(encode: Callable[[bytes], str], levels: int) -> None:
    inner = f"a\tb\n{NUMBER}\n"
    for _ in range(levels):
        inner = json.dumps({"rows": inner})
    encoded = encode(inner.encode())
    outer = f"x\n{encoded}\ny"
    for _ in range(levels):
        outer = json.dumps({"rows": outer})
    assert {outer[f.start : f.end] for f in SMALL.scan(outer) if f.source == "card"} == {encoded}


def test_tabs_and_line_breaks_of_an_encoded_text_that_is_not_ascii_are_text() -> None:
    encoded = base64.b64encode(f"a\t1\n2\t3\n4\t5\nü\t{NUMBER}\n".encode()).decode()
    text = f"see {encoded} it"
    assert [text[f.start : f.end] for f in SMALL.scan(text) if f.source == "card"] == [encoded]


def test_data_that_is_not_text_is_not_decoded_repeatedly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of a path may be the beginning of an encoded segment."""
    decode, digits_decoded = decoding._of_base64, 0

    def counted(digits: str) -> bytes:
        nonlocal digits_decoded
        digits_decoded += len(digits)
        return decode(digits)

    monkeypatch.setattr(decoding, "_of_base64", counted)
    text = "NDI0MiA0MjQy_" * 600
    assert decoding.decoded_views(View(text))
    assert digits_decoded < 32 * len(text)


def test_a_path_with_backslashes_does_not_split_an_identifier() -> None:
    assert not [f for f in SMALL.scan("C:\\new4111\\table1111") if f.source == "card"]


@pytest.mark.parametrize(
    "encode", [str, lambda s: base64.b64encode(s.encode()).decode(), lambda s: s.replace("-", "%2D")]
)
def test_values_at_every_place_of_a_long_text_are_found_in_slices(encode: object) -> None:
    assert callable(encode)
    value = encode("4111-1111-1111-1111")
    size = MAX_SLICE_CHARACTERS
    for place in (0, 10, size - 30, size - 5, size, size + 3, 3 * size - 12):
        text = ("x y " * size)[:place] + " " + value + " " + " y z" * 3000
        results = [f for part in SMALL.scan_in_slices(text) for f in part if f.source == "card"]
        assert [text[f.start : f.end] for f in results] == [value]


def test_values_in_a_long_base64_file_are_found_at_any_slice() -> None:
    for before in (9_000, 9_001, 9_002, 12_287):
        text = base64.b64encode(b"a" * before + b" 4111-1111-1111-1111 " + b"b" * 9000).decode()
        results = [f for f in SMALL.scan("file: " + text) if f.source == "card"]
        assert len(results) == 1
        assert abs(results[0].start - 6 - before * 4 // 3) < 12


def test_several_matchers_over_one_text_find_what_each_finds() -> None:
    text = "AKIAIOSFODNN7EXAMPLE and 4111 1111 1111 1111"
    together = texts.scan((Matcher((KEY,)), Matcher((CARD,))), text)
    assert together == sorted(Matcher((KEY,)).scan(text) + Matcher((CARD,)).scan(text), key=lambda f: f.start)


def test_an_invalid_regex_is_reported_with_its_rule_and_reason() -> None:
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
    # For four times the text, a quadratic algorithm would need sixteen times the time.
    assert seconds(text) < 9 * max(seconds(text[: len(text) // 4]), 0.002)


def test_a_slice_of_a_long_text_is_short() -> None:
    """An event loop that runs between the slices is delayed by at most one slice."""
    text = "Some words, 12 of them, and 4111 1111 1111 1111 for user_1@example.com; " * 4000
    slices = list(SMALL.scan_in_slices(text))
    assert len(slices) >= len(text) // 8192
    # Findings appear slice by slice, not all in the last one.
    assert max(map(len, slices)) <= 8 * sum(map(len, slices)) / len(slices)
