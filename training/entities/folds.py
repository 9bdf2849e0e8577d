"""Determines the fold in which a group of texts is held out. Groups with near duplicates, such as a tweet and its
copies, are held out together. The fold is computed from a digest, so that training and measuring use the same folds."""

import hashlib
from collections.abc import Sequence

from training.entities.corpus import Example
from training.semantic.near_duplicates import clusters

FOLDS = 5


def folds_of(examples: Sequence[Example]) -> dict[str, int]:
    """Return the fold of each group. `examples` are the examples of all training sets."""
    groups = [example.group for example in examples]
    firsts = clusters([example.text for example in examples], groups)
    return {group: fold_of(groups[first]) for group, first in zip(groups, firsts, strict=True)}


def fold_of(group: str) -> int:
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS
