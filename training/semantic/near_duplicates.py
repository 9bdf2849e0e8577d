"""Texts that are nearly the same: one template with other words, one document with other orders in it.

Cross-validation that parts them measures memory: of a held-out text the training half holds a copy.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LENGTH: Final = 9
#: Of all shingles of two texts that both have: templates with other words in them.
_SHARED: Final = 0.4
#: Of the shorter one's shingles, where it has enough: a carrier, a part, a text with another one around it.
_CONTAINED: Final = 0.5
_ENOUGH: Final = 60

Shingles = NDArray[np.int64]


def clusters(texts: Sequence[str], groups: Iterable[str] = ()) -> list[int]:
    """For each text the number of the first one of its cluster: near duplicates, theirs, and so on. `groups`: a name a
    text, of which equal ones belong together whatever the texts are."""
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
    """Union-find whose leader is the smallest number."""

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
    return {plain[start : start + _LENGTH] for start in range(max(len(plain) - _LENGTH + 1, min(len(plain), 1)))}


def _numbered(shingles: Sequence[set[str]]) -> list[Shingles]:
    numbers: dict[str, int] = {}
    return [
        np.array(sorted(numbers.setdefault(item, len(numbers)) for item in one), dtype=np.int64) for one in shingles
    ]


def _holders(shingles: Sequence[Shingles]) -> list[Shingles]:
    """For each shingle the texts that have it."""
    flat = np.concatenate(shingles)
    texts = np.repeat(np.arange(len(shingles)), [len(one) for one in shingles])
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(1, int(flat.max(initial=-1)) + 1))
    return np.split(texts[order], starts)
