"""The definition of a match: what validators, context words and the group `value` make of it."""

import pytest
import re2

from gatehouse.detection.matching import compile_pattern, compile_shape, find, spans
from gatehouse.detection.pattern import CONTEXT_AFTER, CONTEXT_BEFORE, VALID_SCORE, Pattern, Shape, Validator


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


def test_a_branch_without_the_group_takes_what_must_not_be_found() -> None:
    assert find(pattern(shape(r"public key=\d{4}|key=(?P<value>\d{4})")), "public key=1234 key=5678") == [(20, 24, 0.3)]


def test_places_are_code_points() -> None:
    assert find(pattern(shape()), "Grüße 🙂 1234") == [(8, 12, 0.3)]


@pytest.mark.parametrize(("verdict", "expected"), [(True, [VALID_SCORE]), (None, [0.3]), (False, [])])
def test_the_validator_decides(verdict: bool | None, expected: list[float]) -> None:
    assert scores(pattern(shape(validator=lambda text: verdict)), "1234") == expected


def test_the_validator_sees_the_finding_alone() -> None:
    seen: list[str] = []
    one = shape(r"no (?P<value>\d{4})\b", validator=lambda text: bool(seen.append(text)))
    assert scores(pattern(one), "no 1234") == []
    assert seen == ["1234"]


@pytest.mark.parametrize(
    "text",
    ["PIN 1234", "pins: 1234", "my_pin=1234", "1234 is the pin", "pin" + " " * (CONTEXT_BEFORE - 3) + "1234"],
)
def test_a_context_word_nearby_raises_the_score(text: str) -> None:
    assert scores(pattern(shape()), text) == [pytest.approx(0.7)]


@pytest.mark.parametrize(
    "text",
    ["1234", "spin 1234", "pink 1234", "pin" + " " * CONTEXT_BEFORE + "1234", "1234" + " " * CONTEXT_AFTER + "pin"],
)
def test_a_part_of_a_word_and_a_word_far_away_do_not(text: str) -> None:
    assert scores(pattern(shape()), text) == [0.3]


def test_context_never_raises_above_one() -> None:
    assert scores(pattern(shape(score=0.9)), "pin 1234") == [1.0]


def test_a_context_word_of_another_script_needs_no_blank() -> None:
    assert scores(pattern(shape(), context=("여권번호",)), "여권번호는 1234입니다") == [pytest.approx(0.7)]


@pytest.mark.parametrize(("text", "expected"), [("pin 1234", [VALID_SCORE]), ("1234", [])])
def test_a_right_check_digit_does_not_stand_for_context_that_is_needed(text: str, expected: list[float]) -> None:
    assert scores(pattern(shape(validator=lambda found: True, needs_context=True)), text) == expected


def test_a_context_that_cannot_be_is_never_found() -> None:
    assert scores(pattern(shape(needs_context=True), context=()), "pin 1234") == []


def test_of_equal_spans_of_several_shapes_the_best_counts() -> None:
    assert find(pattern(shape(score=0.2), shape(score=0.6)), "1234") == [(0, 4, 0.6)]


def test_below_the_threshold_nothing_is_found() -> None:
    assert find(pattern(shape(score=0.4), threshold=0.5), "1234") == []


def test_what_is_not_re2_is_refused_with_its_reason() -> None:
    with pytest.raises(re2.error, match="invalid perl operator"):
        compile_shape(shape(r"(?=x)"))
