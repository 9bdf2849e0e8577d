"""The definition of a match, with validators, context words and the group `value`."""

import base64

import pytest
import re2

from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import (
    CONTEXT_CHARACTERS_AFTER,
    CONTEXT_CHARACTERS_BEFORE,
    VALID_SCORE,
    Pattern,
    Shape,
    Validator,
)
from gatehouse.detection.search.matching import (
    compile_pattern,
    compile_shape,
    find,
    spans,
)


def shape(
    regex: str = r"\d{4}", *, score: float = 0.3, validator: Validator | None = None, needs_context: bool = False
) -> Shape:
    return Shape(regex=regex, score=score, max_length=64, validator=validator, needs_context=needs_context)


def pattern(*shapes: Shape, context: tuple[str, ...] = ("pin",), threshold: float = 0.0) -> Pattern:
    return Pattern(
        id="one",
        name="One",
        entity_type="one",
        category="pii",
        action="redact",
        threshold=threshold,
        shapes=shapes,
        context=context,
    )


def scores(one: Pattern, text: str) -> list[float]:
    return [span.score for compiled in compile_pattern(one) for span in spans(compiled, text)]


def test_the_whole_match_is_the_finding() -> None:
    assert find(pattern(shape()), "a 1234 b") == [(2, 6, 0.3)]


def test_a_group_named_value_is_the_finding() -> None:
    assert find(pattern(shape(r"no (?P<value>\d{4})")), "no 1234") == [(3, 7, 0.3)]


def test_a_branch_without_the_group_excludes_its_match() -> None:
    assert find(pattern(shape(r"public key=\d{4}|key=(?P<value>\d{4})")), "public key=1234 key=5678") == [(20, 24, 0.3)]


def test_positions_of_findings_are_code_points() -> None:
    assert find(pattern(shape()), "Grüße 🙂 1234") == [(8, 12, 0.3)]


@pytest.mark.parametrize(("verdict", "expected"), [(True, [VALID_SCORE]), (None, [0.3]), (False, [])])
def test_the_result_of_the_validator_sets_the_score(verdict: bool | None, expected: list[float]) -> None:
    assert scores(pattern(shape(validator=lambda text: verdict)), "1234") == expected


def test_a_refused_match_does_not_hide_the_one_that_begins_within_it() -> None:
    one = shape(r"\b\d{4} \d{4}\b", validator=lambda text: text.startswith("2"))
    assert find(pattern(one), "1111 2222 3333 2444 5555") == [(5, 14, 1.0), (15, 24, 1.0)]


def test_a_match_without_its_context_word_does_not_hide_another() -> None:
    # The first of the two overlapping matches ends too far before the word, and the second is near enough.
    text = "1 23 4" + " " * (CONTEXT_CHARACTERS_AFTER - 4) + "pin"
    one = shape(r"\b\d \d{2}\b|\b23 4\b", needs_context=True)
    assert [text[span.start : span.end] for span in find(pattern(one), text)] == ["23 4"]


@pytest.mark.parametrize(("text", "expected"), [("sum = 1234", []), ("SUM = 1234", []), ("sum is 1234", ["1234"])])
def test_text_before_a_match_can_exclude_it(text: str, expected: list[str]) -> None:
    one = Shape(regex=r"\d{4}", score=0.9, max_length=4, not_preceded_by=r"\bsum\s?=\s?")
    assert [text[span.start : span.end] for span in find(pattern(one), text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("the KEY: 1234", ["1234"]), ("1234", []), ("key: 1, id: 1234", []), ("key" + " " * 64 + "1234", [])],
)
def test_text_can_be_required_before_a_match(text: str, expected: list[str]) -> None:
    one = Shape(regex=r"\d{4}", score=0.9, max_length=4, preceded_by=r"key[^,]*")
    assert [text[span.start : span.end] for span in find(pattern(one), text)] == expected


def test_text_before_a_match_may_be_invalid_bytes() -> None:
    one = Shape(regex=r"\d{4}", score=0.9, max_length=4, preceded_by="key: ", not_preceded_by="sum")
    encoded = base64.b64encode(b"this is one of the words \xd0 key: 1234 and more").decode()
    assert Matcher((pattern(one),)).scan(encoded)


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("pin: 1234", True),
        ("3pin: 1234", False),
        ("pin79: 1234", False),
        ("PIN: 1234", True),
        ("pin=1234", True),
    ],
)
def test_a_context_word_beside_a_digit_is_part_of_a_code(text: str, *, stands: bool) -> None:
    one = pattern(shape(r"\b\d{4}\b", needs_context=True), context=("pin", "code="))
    assert bool(find(one, text)) is stands
    assert bool(Matcher((one,)).scan(text)) is stands


def test_a_context_word_that_ends_with_a_sign_may_touch_a_digit() -> None:
    one = pattern(shape(needs_context=True), context=("pin=", "비밀"))
    for text in ("pin=1234", "비밀1234"):
        assert find(one, text)
        assert Matcher((one,)).scan(text)


def test_a_long_match_is_validated_once() -> None:
    seen: list[str] = []
    one = Shape(regex=r"\ba[a ]{1,300}", score=0.9, max_length=301, validator=lambda text: bool(seen.append(text)))
    assert find(pattern(one), "a " * 50) == []
    assert len(seen) == 1


@pytest.mark.parametrize("text", ["file_1234.pdf", "_1234_", "a_1234_b", "1234_x"])
@pytest.mark.parametrize("splits", [True, False])
def test_a_shape_may_split_at_underscores(text: str, *, splits: bool) -> None:
    one = Shape(regex=r"\b\d{4}\b", score=0.9, max_length=4, splits_at_underscore=splits)
    assert [text[span.start : span.end] for span in find(pattern(one), text)] == ["1234"] * splits


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        (r"key_\w{4}", "key_a_1b"),
        (r"[\w\-]{4}\b", "a_-b"),
        (r"[^_]{3}[_x]", "a b_"),
        (r"\W\w{2}\W", " _a "),
        (r"[]_]\][_]", "_]_"),
    ],
)
def test_a_regex_can_require_underscores_that_split_words(regex: str, text: str) -> None:
    one = Shape(regex=regex, score=0.9, max_length=8, splits_at_underscore=True)
    assert [span[:2] for span in find(pattern(one), f"{text}")] == [(0, len(text))]


def test_the_validator_gets_only_the_finding() -> None:
    seen: list[str] = []
    one = shape(r"no (?P<value>\d{4})\b", validator=lambda text: bool(seen.append(text)))
    assert scores(pattern(one), "no 1234") == []
    assert seen == ["1234"]


@pytest.mark.parametrize(
    "text",
    [
        "PIN 1234",
        "pins: 1234",
        "my_pin=1234",
        "1234 is the pin",
        "pin" + " " * (CONTEXT_CHARACTERS_BEFORE - 3) + "1234",
    ],
)
def test_a_context_word_nearby_raises_the_score(text: str) -> None:
    assert scores(pattern(shape()), text) == [pytest.approx(0.7)]


@pytest.mark.parametrize(
    "text",
    [
        "1234",
        "spin 1234",
        "pink 1234",
        "pin" + " " * CONTEXT_CHARACTERS_BEFORE + "1234",
        "1234" + " " * CONTEXT_CHARACTERS_AFTER + "pin",
    ],
)
def test_parts_of_words_and_distant_context_words_do_not_raise_the_score(text: str) -> None:
    assert scores(pattern(shape()), text) == [0.3]


def test_context_never_raises_above_one() -> None:
    assert scores(pattern(shape(score=0.9)), "pin 1234") == [1.0]


def test_a_context_word_of_another_script_needs_no_blank() -> None:
    assert scores(pattern(shape(), context=("여권번호",)), "여권번호는 1234입니다") == [pytest.approx(0.7)]


@pytest.mark.parametrize(("text", "expected"), [("pin 1234", [VALID_SCORE]), ("1234", [])])
def test_a_correct_check_digit_does_not_replace_required_context(text: str, expected: list[float]) -> None:
    assert scores(pattern(shape(validator=lambda match: True, needs_context=True)), text) == expected


def test_a_shape_that_needs_context_and_has_no_context_words_matches_nothing() -> None:
    assert scores(pattern(shape(needs_context=True), context=()), "pin 1234") == []


def test_of_equal_spans_of_several_shapes_the_best_counts() -> None:
    assert find(pattern(shape(score=0.2), shape(score=0.6)), "1234") == [(0, 4, 0.6)]


def test_below_the_threshold_nothing_is_found() -> None:
    assert find(pattern(shape(score=0.4), threshold=0.5), "1234") == []


def test_an_invalid_re2_pattern_is_refused_with_the_reason() -> None:
    with pytest.raises(re2.error, match="invalid perl operator"):
        compile_shape(shape(r"(?=x)"))
