"""Converts the scores of word pieces to names. Computes the best valid sequence of BIO tags for this."""

from typing import Final, NamedTuple

import numpy as np

from gatehouse.detection.entities.network.features import Pieces

KINDS: Final = ("person", "organization", "location")
TAGS: Final = 1 + 2 * len(KINDS)
_IMPOSSIBLE_SCORE: Final = -1e4


def _transition_scores() -> np.ndarray:
    """Return the score of each transition from a tag (row) to the next tag (column). An inside tag may only follow tags
    of its own kind."""
    scores = np.zeros((TAGS, TAGS))
    for kind in range(len(KINDS)):
        inside = 2 + 2 * kind
        scores[:, inside] = _IMPOSSIBLE_SCORE
        scores[[inside - 1, inside], inside] = 0.0
    return scores


_TRANSITIONS: Final = _transition_scores()


class Name(NamedTuple):
    start: int
    end: int
    kind: str
    score: float


def decode_names(scores: np.ndarray, pieces: Pieces, text: str) -> list[Name]:
    """Return the names in a text. `scores` has log-probabilities, with a row for each piece and a column for each tag.

    A word has the tag of its first piece. The score of a name is a mean over its words: the mean of the summed
    probabilities of the two tags of its kind.
    """
    (first_pieces,) = pieces.first[: len(scores)].nonzero()
    if not len(first_pieces):
        return []
    word_scores = scores[first_pieces]
    tags = best_tags(word_scores)
    if not tags.any():
        return []
    word_ends = np.append(pieces.starts[first_pieces[1:]], pieces.ends[len(scores) - 1])
    decoded_names: list[Name] = []
    word = 0
    while word < len(tags):
        if tags[word] == 0:
            word += 1
            continue
        kind = (int(tags[word]) - 1) // 2
        next_word = word + 1
        while next_word < len(tags) and tags[next_word] == 2 + 2 * kind:
            next_word += 1
        start, end = int(pieces.starts[first_pieces[word]]), int(word_ends[next_word - 1])
        end = start + len(text[start:end].rstrip())
        score = np.exp(word_scores[word:next_word, 1 + 2 * kind : 3 + 2 * kind]).sum(axis=1).mean()
        decoded_names.append(Name(start, end, KINDS[kind], float(score)))
        word = next_word
    return decoded_names


def best_tags(scores: np.ndarray) -> np.ndarray:
    """Return the best valid sequence of tags, one for each word (row of `scores`), by the Viterbi algorithm."""
    size = len(scores)
    back = np.zeros((size, TAGS), np.int64)
    best = scores[0].copy()
    best[2::2] = _IMPOSSIBLE_SCORE
    for index in range(1, size):
        paths = best[:, None] + _TRANSITIONS
        back[index] = paths.argmax(axis=0)
        best = paths.max(axis=0) + scores[index]
    tags = np.zeros(size, np.int64)
    tags[-1] = best.argmax()
    for index in range(size - 1, 0, -1):
        tags[index - 1] = back[index, tags[index]]
    return tags
