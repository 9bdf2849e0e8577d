"""Which fifth a group of texts is held out with. Groups that share near-duplicates, such as a tweet and its copies, are
held out together; by digest, so that training and measuring agree."""

import hashlib
from collections.abc import Sequence

from training.entities.corpus import Example
from training.semantic.near_duplicates import clusters

FOLDS = 5


def folds_of(examples: Sequence[Example]) -> dict[str, int]:
    """By group. `examples`: those of all sets that are trained on."""
    groups = [example.group for example in examples]
    firsts = clusters([example.text for example in examples], groups)
    return {group: fold_of(groups[first]) for group, first in zip(groups, firsts, strict=True)}


def fold_of(group: str) -> int:
    return hashlib.sha256(group.encode()).digest()[0] % FOLDS
