"""Scores a draft against reviewers' labels: counts of true positives, false positives and false negatives by name."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any


class Measure:
    """Counts samples by name, which is an entity type or an action. A sample is treated as `right` if label and draft
    name it, as `wrong` if only the draft names it, and as `missed` if only the label names it."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()

    def add(self, labels: Mapping[str, bool], draft_names: AbstractSet[str]) -> None:
        """Count one sample. Names without a label are not counted."""
        for name, is_present in labels.items():
            if is_present and name in draft_names:
                self.right[name] += 1
            elif is_present:
                self.missed[name] += 1
            elif name in draft_names:
                self.wrong[name] += 1

    def names(self) -> set[str]:
        return {*self.right, *self.wrong, *self.missed}

    def fields(self, name: str, suffix: str = "") -> dict[str, Any]:
        """Return the fields of `Measured` for `name`, with `suffix` added to their names."""
        right, wrong, missed = self.right[name], self.wrong[name], self.missed[name]
        return {
            f"right{suffix}": right,
            f"wrong{suffix}": wrong,
            f"missed{suffix}": missed,
            f"precision{suffix}": round(right / (right + wrong), 4) if right + wrong else None,
            f"recall{suffix}": round(right / (right + missed), 4) if right + missed else None,
        }
