import pytest
from tokenizers import Tokenizer

from gatehouse.detection.entities.embedded import DATA
from gatehouse.detection.entities.network.features import (
    CAPITALISED,
    DIGITS,
    LOWER,
    MIXED,
    OTHER,
    SINGLE_UPPER,
    UPPER,
    pieces,
    shape,
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    loaded = Tokenizer.from_file(str(DATA / "tokenizer.json"))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("word", LOWER),
        ("Word", CAPITALISED),
        ("WORD", UPPER),
        ("W", SINGLE_UPPER),
        ("McCoy", MIXED),
        ("42", DIGITS),
        ("?", OTHER),
        ("Œuvre", CAPITALISED),
    ],
)
def test_a_shape_describes_the_spelling_of_a_piece(piece: str, expected: int) -> None:
    assert shape(piece) == expected


def test_capitals_change_the_shapes_and_not_the_vocabulary_ids(tokenizer: Tokenizer) -> None:
    small, large = pieces(tokenizer, "may hill"), pieces(tokenizer, "May Hill")
    assert small.ids.tolist() == large.ids.tolist()
    assert small.shapes.tolist() != large.shapes.tolist()


def test_shapes_are_within_their_table(tokenizer: Tokenizer) -> None:
    read = pieces(tokenizer, "It's McCoy's 3rd @NASA-visit, naïve \uff21\uff22 北京!")
    # A shape consists of two cases, each one of eight, and two bits.
    assert 0 <= read.shapes.min() <= read.shapes.max() < 8 * 8 * 4


def test_offsets_are_code_points_of_the_text(tokenizer: Tokenizer) -> None:
    text = "😀 Zoë met \u201c\uff21da\u201d"
    read = pieces(tokenizer, text)
    words = [text[s:e] for s, e in zip(read.starts, read.ends, strict=True)]
    assert "".join(words) == text.replace(" ", "")


def test_only_the_first_piece_of_a_word_opens_it(tokenizer: Tokenizer) -> None:
    read = pieces(tokenizer, "Gatehousekeeper sleeps")
    assert len(read.ids) > 2
    assert read.starts[read.first].tolist() == [0, 16]
