"""How good a draft is by reviewers' labels: right and wrong samples by what the labels name."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any


class Measure:
    """By name (an entity type, an action), samples of which the label and the draft say so (`right`), the draft alone
    (`wrong`), the label alone (`missed`)."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()

    def note(self, labels: Mapping[str, bool], by_the_draft: AbstractSet[str]) -> None:
        """Names that the labels do not have count in no way."""
        for name, there in labels.items():
            if there and name in by_the_draft:
                self.right[name] += 1
            elif there:
                self.missed[name] += 1
            elif name in by_the_draft:
                self.wrong[name] += 1

    def names(self) -> set[str]:
        return {*self.right, *self.wrong, *self.missed}

    def shown(self, name: str, suffix: str = "") -> dict[str, Any]:
        right, wrong, missed = self.right[name], self.wrong[name], self.missed[name]
        return {
            f"right{suffix}": right,
            f"wrong{suffix}": wrong,
            f"missed{suffix}": missed,
            f"precision{suffix}": round(right / (right + wrong), 4) if right + wrong else None,
            f"recall{suffix}": round(right / (right + missed), 4) if right + missed else None,
        }
