"""The scanner finds the same in a text that arrives in pieces as in the whole text, and holds back only as much as
necessary."""

# ruff: noqa: RUF001 - look-alikes are among the texts

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.detection.patterns import ADDRESS, ALL, BLOCK, CARD, KEY, RUN, TAX, pattern

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import Shape
from gatehouse.detection.scanning.windows import STEP_CHARACTERS, Scanner
from gatehouse.detection.separator import BETWEEN_TEXTS

SMALL = Matcher(ALL)
BUILT = Matcher(BUILT_IN)

PLANTED = [
    "4111 1111 1111 1111",
    "41111111\u200b11111111",
    "４１１１１１１１１１１１１１１１",
    "4111111\n111111111",
    "AKIAIOSFODNN7EXAMPLE",
    "АКІАIOSFODNN7EXAMPLE",
    "AKIAIOSF\r\nODNN7EXAMPLE",
    "tax 12 345 678",
    "12 345 678 is a tax",
    "TX123456",
    "-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----",
    "-----BEGIN KEY-----",
    "jane.doe@example.com",
    "паспорт 4509",
    "project zeus",
    "1234567890123",
    "\u200b" * 70,
    "\\u0034111111111111111",
    "a\\n4111111111111111",
    "\\t4111 1111 1111 1111\\r",
    "\\\\n4111111111111111\\\\n",
    "\\u003" + "4" + "\\u0031111111\\x2d11111111",
    "\\n-----BEGIN KEY-----\\nabc\\n-----END KEY-----\\n",
]
FILLING = [
    " ",
    "\n",
    "a word ",
    "1",
    "-",
    "\\",
    "\\" * 20,
    "n",
    "\r\n",
    "\u0301",
    "é",
    "с",
    "AKIA",
    "-----BEGIN",
    ".",
    "and so it goes on ",
]

texts = st.lists(st.sampled_from(PLANTED + FILLING * 3), max_size=40).map("".join)
#: lengths of the pieces, used in turn
cuts = st.lists(st.integers(1, 60), min_size=1, max_size=8)


def scanned(
    text: str, lengths: list[int], matchers: tuple[Matcher, ...] = (SMALL,), *, json_escapes: bool = False
) -> tuple[list[Finding], list[int]]:
    scanner = Scanner(matchers, json_escapes=json_escapes)
    results: list[Finding] = []
    released = [0]
    place = turn = 0
    while place < len(text):
        length = lengths[turn % len(lengths)]
        scanner.push(text[place : place + length])
        place, turn = place + length, turn + 1
        new, cut = scanner.advance(final=False)
        assert all(finding.start >= released[-1] for finding in new), "a finding lies in text that was released before"
        results += new
        released.append(cut)
        assert all(finding.end <= cut for finding in results), "text was released in the middle of a finding"
    new, cut = scanner.advance(final=True)
    assert all(finding.start >= released[-1] for finding in new)
    return results + new, [*released, cut]


@settings(max_examples=400, deadline=None)
@given(texts, cuts, st.booleans())
def test_pieces_give_the_same_findings_as_the_whole_text(text: str, lengths: list[int], json_escapes: bool) -> None:
    result, released = scanned(text, lengths, json_escapes=json_escapes)
    assert result == SMALL.scan(text, decoded=False, json_escapes=json_escapes)
    assert released == sorted(released)
    assert released[-1] == len(text)


@settings(max_examples=60, deadline=None)
@given(texts, cuts)
def test_pieces_give_the_same_findings_as_the_whole_text_with_all_patterns(text: str, lengths: list[int]) -> None:
    result, _ = scanned(text, lengths, (BUILT, SMALL))
    expected, _ = scanned(text, [10_000], (BUILT, SMALL))
    assert result == expected


@settings(max_examples=200, deadline=None)
@given(texts, cuts)
def test_findings_that_are_not_released_are_findings_of_the_whole_text(text: str, lengths: list[int]) -> None:
    whole = SMALL.scan(text, decoded=False)
    scanner, place, turn = Scanner((SMALL,)), 0, 0
    while place < len(text):
        length = lengths[turn % len(lengths)]
        scanner.push(text[place : place + length])
        place, turn = place + length, turn + 1
        _, released = scanner.advance(final=False)
        unreleased = scanner.unreleased_findings()
        assert all(finding in whole and finding.start >= released for finding in unreleased)


def test_a_caller_that_scans_no_further_gets_the_findings_that_are_not_released() -> None:
    text = "AKIAAKIAIOSFODNN7EXAMPLE-----BEGIN\u0301\u0301 \u0441\r\n\\t4111 1111 1111 1111\\r\r\n"
    scanner = Scanner((SMALL,))
    for start in range(0, len(text), 11):
        scanner.push(text[start : start + 11])
        findings, _ = scanner.advance(final=False)
    assert [finding.source for finding in findings] != ["card"]
    assert [text[finding.start : finding.end] for finding in scanner.unreleased_findings()] == ["4111 1111 1111 1111"]


@pytest.mark.parametrize("length", range(1, 40))
def test_every_length_of_piece_finds_a_value_among_others(length: int) -> None:
    text = "so " * 200 + "pay 4111 1111 1111 1111 now" + " and" * 200
    result, _ = scanned(text, [length], (BUILT,))
    assert [(f.source, text[f.start : f.end]) for f in result if f.source == "credit-card"] == [
        ("credit-card", "4111 1111 1111 1111")
    ]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 13, 40, 64, 100])
def test_a_value_that_is_one_whole_text_is_found_in_pieces(length: int) -> None:
    number, long = "1234567893", "and so it goes on " * 40
    whole = f"There are {number} of them."
    for before in ("", "x", long):
        for marks in ("", " ", '".'):
            text = BETWEEN_TEXTS.join([before, number + marks, number, whole, long, f"'{number}\n", number])
            result, _ = scanned(text, [length], (BUILT,))
            assert result == BUILT.scan(text, decoded=False)
            assert [text[f.start : f.end] for f in result if f.source == "us-npi"] == [number] * 4


def test_a_match_across_a_line_break_is_found_in_pieces() -> None:
    """A match across the line break does not hide another match that begins within it and becomes final later."""
    longer = Shape(regex=r"\bab [0-9 ]{0,40}\d{8}\b", score=1.0, max_length=51)
    pair = Matcher((pattern("pair", longer, Shape(regex=r"\b\d{8}\b", score=1.0, max_length=8)),))
    for before in range(60):
        text = "x" * before + " ab 1 22 3 44 5 66 7 88 1234\n5678" + " y" * 200
        whole = pair.scan(text, decoded=False)
        assert len(whole) == 2
        assert scanned(text, [7], (pair,))[0] == whole


def test_only_the_longest_match_is_held_back() -> None:
    matcher = Matcher((CARD, KEY, ADDRESS, BLOCK))
    _, released = scanned("word " * 400, [10], (matcher,))
    delayed_characters = [10 * turn - cut for turn, cut in enumerate(released[:-1])]
    assert max(delayed_characters) <= 46 + 30 + 2 * STEP_CHARACTERS + 10


def test_an_opening_holds_back_only_text_from_its_position() -> None:
    matcher = Matcher((BLOCK,))
    text = "word " * 50 + "-----BEGIN KEY-----" + " word" * 50
    _, released = scanned(text, [10], (matcher,))
    # A match may need the blank before it.
    assert max(released[:-1]) in {249, 250}


def test_text_after_an_opening_without_a_match_is_released() -> None:
    matcher = Matcher((BLOCK,))
    text = "-----BEGIN a letter " + "word " * 200
    _, released = scanned(text, [50], (matcher,))
    assert released[-2] > 500


def test_invisible_padding_does_not_exceed_the_window() -> None:
    text = "x " * 100 + "4" + "".join("\u200b" * 300 + digit for digit in "111111111111111") + " " + "y " * 100
    result, _ = scanned(text, [64], (Matcher((CARD,)),))
    assert [finding.source for finding in result] == ["card"]


def test_a_match_waits_for_a_context_word_after_it() -> None:
    text = "it is 12345678 for the tax" + " office" * 100
    for length in range(1, 30):
        result, _ = scanned(text, [length], (Matcher((TAX,)),))
        assert [text[f.start : f.end] for f in result] == ["12345678"]


def test_matches_without_boundaries_keep_their_places() -> None:
    """The next match begins where the last one ended, however the digits were split."""
    text = "1" * 1003
    for length in (1, 7, 64):
        result, _ = scanned(text, [length], (Matcher((RUN,)),))
        assert [finding.start for finding in result] == list(range(0, 1000, 5))


def test_the_kept_text_is_bounded_by_the_window() -> None:
    scanner = Scanner((SMALL,))
    for _ in range(2000):
        scanner.push("some more words of an answer, and 12345 too. ")
        scanner.advance(final=False)
    assert len(scanner._tail) < 4000


def test_a_long_chain_of_overlaps_is_held_back_and_not_searched_again() -> None:
    """The matches of two patterns overlap through the whole text: no text may be released, and the time stays
    linear."""
    matcher = Matcher(
        (
            pattern("ab", Shape(regex="ab{3}a?", score=1.0, max_length=5)),
            pattern("ba", Shape(regex="b{3}a?b", score=1.0, max_length=5)),
        )
    )

    def seconds(times: int) -> float:
        started = process_time()
        scanned("abbb" * times, [40], (matcher,))
        return process_time() - started

    seconds(100)
    assert seconds(4000) < 16 * max(seconds(1000), 0.01)


def test_released_positions_never_fall_within_overlapping_findings() -> None:
    text = "jane.doe4111111111111111@example.com " * 20
    for length in (3, 17):
        result, released = scanned(text, [length], (SMALL,))
        for start, end in pairwise(sorted(set(released))):
            assert start < end
        for cut in released:
            assert not any(finding.start < cut < finding.end for finding in result)


def test_a_match_in_pieces_is_no_longer_than_its_maximum() -> None:
    """The regex has no maximum length, like some patterns of organizations."""
    loose = Matcher((pattern("loose", Shape(regex=r"a\w*|b.*c", score=1.0, max_length=40)),))
    text = "a" + "x" * 100 + " b " + "y " * 60 + "c b 12 c " + "z " * 100
    whole = loose.scan(text, decoded=False)
    assert [(f.start, f.end) for f in whole if f.start < 45] == [(0, 40)]
    assert "b 12 c" in [text[f.start : f.end] for f in whole]
    for length in (1, 13, 50):
        assert scanned(text, [length], (loose,))[0] == whole


def test_only_the_actual_maximum_length_of_a_match_is_held_back() -> None:
    matcher = Matcher((pattern("narrow", Shape(regex=r"\bEMP\d{5}\b", score=1.0, max_length=1024)),))
    _, released = scanned("word " * 100, [10], (matcher,))
    assert max(10 * turn - cut for turn, cut in enumerate(released[:-1])) < 120
