"""Finds texts that are nearly the same, such as one template with different words, or one document with different
instructions in it.

If near duplicates were in different parts of a cross-validation, the training part would contain copies of held-out
texts.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_SHINGLE_CHARACTERS: Final = 9
#: Minimum share of common shingles among all shingles of two texts, as for one template with different words.
_SHARED: Final = 0.4
#: Minimum share of common shingles among the shingles of the shorter text, if it has enough, as for a text that
#: contains the other one.
_CONTAINED: Final = 0.5
_ENOUGH: Final = 60

Shingles = NDArray[np.int64]


def clusters(texts: Sequence[str], groups: Iterable[str] = ()) -> list[int]:
    """Return for each text the number of the first text of its cluster. A cluster contains near duplicates, their near
    duplicates, and so on. If `groups` has a name for each text, texts with equal names are in the same cluster."""
    leaders = _Leaders(len(texts))
    first: dict[str, int] = {}
    for number, group in enumerate(groups):
        leaders.join(first.setdefault(group, number), number)
    shingles = _numbered([_shingles(text) for text in texts])
    sizes = np.array([len(one) for one in shingles])
    holders = _holders(shingles)
    for number, own in enumerate(shingles):
        if not len(own):
            continue
        shared = np.bincount(np.concatenate([holders[item] for item in own]), minlength=len(texts))[:number]
        smaller = np.minimum(sizes[:number], len(own))
        near = shared >= _SHARED * (sizes[:number] + len(own) - shared)
        near |= (shared >= _CONTAINED * smaller) & (smaller >= _ENOUGH)
        for other in np.flatnonzero(near):
            leaders.join(int(other), number)
    return [leaders.of(number) for number in range(len(texts))]


class _Leaders:
    """Disjoint sets (union-find). The leader of a set is its smallest number."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def of(self, number: int) -> int:
        while self._above[number] != number:
            self._above[number] = self._above[self._above[number]]
            number = self._above[number]
        return number

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.of(one), self.of(other)))
        self._above[high] = low


def _shingles(text: str) -> set[str]:
    plain = " ".join("".join(character if character.isalnum() else " " for character in text.lower()).split())
    return {
        plain[start : start + _SHINGLE_CHARACTERS]
        for start in range(max(len(plain) - _SHINGLE_CHARACTERS + 1, min(len(plain), 1)))
    }


def _numbered(shingles: Sequence[set[str]]) -> list[Shingles]:
    numbers: dict[str, int] = {}
    return [
        np.array(sorted(numbers.setdefault(item, len(numbers)) for item in one), dtype=np.int64) for one in shingles
    ]


def _holders(shingles: Sequence[Shingles]) -> list[Shingles]:
    """Return for each shingle the texts that contain it."""
    flat = np.concatenate(shingles)
    texts = np.repeat(np.arange(len(shingles)), [len(one) for one in shingles])
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(1, int(flat.max(initial=-1)) + 1))
    return np.split(texts[order], starts)
