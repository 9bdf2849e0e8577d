import numpy as np
import pytest
from tokenizers import Tokenizer

from gatehouse.detection.entities.embedded import DATA
from gatehouse.detection.entities.network.decoding import KINDS, TAGS
from gatehouse.detection.entities.network.features import pieces
from gatehouse.detection.entities.network.name_bias import BIAS_WEIGHT, logit_bias


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(DATA / "tokenizer.json"))


def inclined(tokenizer: Tokenizer, text: str) -> list[tuple[str, list[str]]]:
    """Return the pieces that belong to a known name, with the kinds whose scores are raised."""
    read = pieces(tokenizer, text)
    added = logit_bias(text, read)
    assert added.shape == (len(read.ids), TAGS)
    assert set(np.unique(added)) <= {0.0, BIAS_WEIGHT}
    assert not added[:, 0].any()
    assert (added[:, 1::2] == added[:, 2::2]).all()
    return [
        (text[read.starts[row] : read.ends[row]], [KINDS[kind] for kind in added[row, 1::2].nonzero()[0]])
        for row in added.any(axis=1).nonzero()[0]
    ]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Obama spoke", [("Obama", ["person"])]),
        ("in new york today", [("new", ["location"]), ("york", ["location"])]),
        ("#London calling", [("#", ["location"]), ("London", ["location"])]),
        ("I like The Beatles.", [("Beatles", ["organization"])]),
        ("ARSENAL v Chelsea", [("ARSENAL", ["organization"]), ("Chelsea", ["organization"])]),
        ("Liverpool", [("Liverpool", ["organization", "location"])]),
        ("made in the UK and the U.S.", [("UK", ["location"]), *((part, ["location"]) for part in ("U", ".", "S"))]),
    ],
)
def test_known_names_have_a_bias_for_their_kinds(
    tokenizer: Tokenizer, text: str, pieces: list[tuple[str, list[str]]]
) -> None:
    assert inclined(tokenizer, text) == pieces


@pytest.mark.parametrize(
    "text",
    ["", "tell us who had time for an apple", "the target of la familia", "Londonderry Obamacare", "def test(self):"],
)
def test_everyday_words_and_parts_of_words_have_no_bias(tokenizer: Tokenizer, text: str) -> None:
    assert inclined(tokenizer, text) == []


def test_the_longest_known_name_sets_the_bias(tokenizer: Tokenizer) -> None:
    assert {kinds[0] for _, kinds in inclined(tokenizer, "University of California")} == {"organization"}
