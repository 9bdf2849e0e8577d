"""Regions of a derived view: a context word right after an escape counts up to its maximum distance."""

import pytest
from tests.detection.patterns import pattern

from gatehouse.detection.pattern import CONTEXT_CHARACTERS_BEFORE, Shape
from gatehouse.detection.pattern_set import PatternSet
from gatehouse.detection.scanning import texts

VALUE = "ZQ71234"
SHAPE = Shape(regex=r"\bZQ7[0-9]{4}\b", score=0.5, max_length=20, needs_context=True)
PATTERNS = PatternSet([pattern("value", SHAPE, context=("ssn",))])


@pytest.mark.parametrize("line_break", ["\n", r"\n"])
@pytest.mark.parametrize(
    ("distance", "is_context"),
    [
        (CONTEXT_CHARACTERS_BEFORE - 1, True),
        (CONTEXT_CHARACTERS_BEFORE, True),
        (CONTEXT_CHARACTERS_BEFORE + 1, False),
    ],
)
def test_a_context_word_after_an_escape_counts_as_after_a_line_break(
    line_break: str, distance: int, is_context: bool
) -> None:
    text = f"a{line_break}{'ssn '.ljust(distance - 1, '.')} {VALUE} end"
    start = text.index(VALUE)
    expected = [(start, start + len(VALUE))] if is_context else []
    assert [(finding.start, finding.end) for finding in texts.scan([PATTERNS], text)] == expected
