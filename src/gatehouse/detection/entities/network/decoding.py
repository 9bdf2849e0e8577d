"""Decodes tags of word pieces to names: the best valid sequence of BIO tags."""

from typing import Final, NamedTuple

import numpy as np

from gatehouse.detection.entities.network.features import Pieces

KINDS: Final = ("person", "organization", "location")
TAGS: Final = 1 + 2 * len(KINDS)
_IMPOSSIBLE: Final = -1e4


def _steps() -> np.ndarray:
    allowed = np.zeros((TAGS, TAGS))
    for kind in range(len(KINDS)):
        inside = 2 + 2 * kind
        allowed[:, inside] = _IMPOSSIBLE
        allowed[[inside - 1, inside], inside] = 0.0
    return allowed


_STEPS: Final = _steps()


class Name(NamedTuple):
    start: int
    end: int
    kind: str
    score: float


def spans(scores: np.ndarray, read: Pieces, text: str) -> list[Name]:
    """Return the names. `scores` has log-probabilities, a row for each piece and a column for each tag.

    A word has the tag of its first piece. The score of a name is the mean probability of its words to be part of such a
    name.
    """
    (places,) = read.first[: len(scores)].nonzero()
    if not len(places):
        return []
    words = scores[places]
    tags = best_row(words)
    if not tags.any():
        return []
    ends = np.append(read.starts[places[1:]], read.ends[len(scores) - 1])
    decoded_names: list[Name] = []
    at = 0
    while at < len(tags):
        if tags[at] == 0:
            at += 1
            continue
        kind = (int(tags[at]) - 1) // 2
        behind = at + 1
        while behind < len(tags) and tags[behind] == 2 + 2 * kind:
            behind += 1
        start, end = int(read.starts[places[at]]), int(ends[behind - 1])
        end = start + len(text[start:end].rstrip())
        sure = np.exp(words[at:behind, 1 + 2 * kind : 3 + 2 * kind]).sum(axis=1).mean()
        decoded_names.append(Name(start, end, KINDS[kind], float(sure)))
        at = behind
    return decoded_names


def best_row(scores: np.ndarray) -> np.ndarray:
    """Return the best sequence of tags, by the Viterbi algorithm over words."""
    size = len(scores)
    back = np.zeros((size, TAGS), np.int64)
    best = scores[0].copy()
    best[2::2] = _IMPOSSIBLE
    for index in range(1, size):
        through = best[:, None] + _STEPS
        back[index] = through.argmax(axis=0)
        best = through.max(axis=0) + scores[index]
    tags = np.zeros(size, np.int64)
    tags[-1] = best.argmax()
    for index in range(size - 1, 0, -1):
        tags[index - 1] = back[index, tags[index]]
    return tags
