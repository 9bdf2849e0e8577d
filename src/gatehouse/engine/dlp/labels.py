"""What stands in the place of a redacted value: `[CREDIT_CARD_1]`, the same value the same label within a request."""

import re

_UNFIT = re.compile(r"[^A-Z0-9]+")


class Labels:
    """One request's, and gone with it. Numbers count by entity type, from 1, in the order of appearance."""

    __slots__ = ("_by_value", "_counts", "longest", "values")

    def __init__(self) -> None:
        self._by_value: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        #: the values that may be turned back, by label
        self.values: dict[str, str] = {}
        #: code points of the longest label that may be turned back
        self.longest = 0

    def of(self, entity_type: str, value: str, *, reversible: bool = False) -> str:
        kind = _UNFIT.sub("_", entity_type.upper()).strip("_") or "REDACTED"
        label = self._by_value.get((kind, value))
        if label is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            label = self._by_value[kind, value] = f"[{kind}_{number}]"
        if reversible and label not in self.values:
            self.values[label] = value
            self.longest = max(self.longest, len(label))
        return label
