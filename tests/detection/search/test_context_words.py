"""Context words: the common search for the words of all patterns finds the same as the definition for each pattern."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.normalise import seen
from gatehouse.detection.pattern import Shape
from gatehouse.detection.search import matching
from gatehouse.detection.search.context_words import Contexts

#: Words that are the beginning of another word, end with a plural `s`, contain another word, or are in another script.
WORDS = (
    ("card", "credit card"),
    ("cards", "swift code"),
    ("swift", "ein:"),
    ("a/c", "여권", "né le"),
)
CONTEXTS = Contexts({word: 1 << bit for bit, words in enumerate(WORDS) for word in words})
SHAPES = [
    matching.compile_shape(Shape(regex="x", score=1.0, max_length=1), matching.compile_context(words))
    for words in WORDS
]

pieces = st.sampled_from(
    [word for words in WORDS for word in words] + ["s", "S", "x", " ", "  ", "-", "1", "é", "CARD", "Né Le", "." * 20]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(pieces, max_size=12).map("".join), st.data())
def test_the_words_near_a_finding_are_those_of_the_definition(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    near = CONTEXTS.words_near(seen(text, json_escapes=False), 0, len(text)).bits_near(start, end)
    assert [bool(near & 1 << bit) for bit in range(len(WORDS))] == [
        matching.in_context(shape, text, start, end) for shape in SHAPES
    ]


def test_words_of_a_part_of_a_text_are_those_near_it() -> None:
    text = "swift " * 100 + "card " + "x" * 20 + " swift" * 100
    positions = CONTEXTS.words_near(seen(text, json_escapes=False), 605, 625)
    assert positions.bits_near(605, 625) == 0b101
    assert len(positions.begins) < 30


def test_without_context_words_none_is_near() -> None:
    assert CONTEXTS.words_near(seen("discard the cardboard", json_escapes=False), 0, 21).bits_of_all == 0


def test_a_letter_after_a_words_punctuation_is_not_a_plural() -> None:
    matcher = Matcher(BUILT_IN)
    for text in ("dx:S72.0", "dx: S72.0", "diagnosis:S72.0", "DX:S72.0"):
        assert any(finding.entity_type == "diagnosis_code" for finding in matcher.scan(text)), text
