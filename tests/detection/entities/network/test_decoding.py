import numpy as np
import pytest

from gatehouse.detection.entities.network.decoding import TAGS, best_tags, decode_names
from gatehouse.detection.entities.network.features import Pieces

OUTSIDE, B_PERSON, I_PERSON, B_ORGANIZATION, I_ORGANIZATION = range(5)


def scores(*rows: dict[int, float]) -> np.ndarray:
    """Return log-probabilities. Classes that a row does not name share the remaining probability."""
    table = np.empty((len(rows), TAGS))
    for index, row in enumerate(rows):
        table[index] = (1 - sum(row.values())) / (TAGS - len(row))
        for tag, probability in row.items():
            table[index, tag] = probability
    return np.log(table)


def read(*words: tuple[int, int]) -> Pieces:
    size = len(words)
    starts, ends = np.array([w[0] for w in words]), np.array([w[1] for w in words])
    return Pieces(np.zeros(size), np.zeros(size), starts, ends, np.ones(size, bool))


def test_a_name_always_begins_with_a_beginning_tag() -> None:
    assert best_tags(scores({I_PERSON: 0.9}, {I_PERSON: 0.9})).tolist() == [B_PERSON, I_PERSON]


def test_a_name_does_not_continue_as_another_kind() -> None:
    row = best_tags(scores({B_PERSON: 0.9}, {I_ORGANIZATION: 0.6, I_PERSON: 0.3}))
    assert row.tolist() == [B_PERSON, I_PERSON]


def test_words_of_one_name_are_one_span() -> None:
    windows = decode_names(
        scores({B_PERSON: 0.9}, {I_PERSON: 0.8}, {OUTSIDE: 0.99}), read((0, 3), (4, 12), (13, 18)), "x" * 18
    )
    assert [(name.start, name.end, name.kind) for name in windows] == [(0, 13, "person")]
    assert windows[0].score == pytest.approx((0.9 + 0.1 / 6 + 0.8 + 0.2 / 6) / 2)


def test_adjacent_names_are_not_joined() -> None:
    windows = decode_names(scores({B_PERSON: 0.9}, {B_ORGANIZATION: 0.9}), read((0, 3), (4, 8)), "Ada Acme")
    assert [(name.start, name.end, name.kind) for name in windows] == [(0, 3, "person"), (4, 8, "organization")]


def test_an_empty_text_has_no_names() -> None:
    assert decode_names(np.empty((0, TAGS)), read(), "") == []
