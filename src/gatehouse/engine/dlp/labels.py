"""What stands in the place of a redacted value: `[CREDIT_CARD_1]`, the same value the same label within a request."""

import re

_UNFIT = re.compile(r"[^A-Z0-9]+")
_LABEL = re.compile(r"\[[A-Z0-9_]+\]")


class Labels:
    """One request's, and gone with it. Numbers count by entity type, from 1, in the order of appearance."""

    __slots__ = ("_by_value", "_counts", "_taken", "longest", "values")

    def __init__(self) -> None:
        self._by_value: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()
        #: the values that may be turned back, by label
        self.values: dict[str, str] = {}
        #: code points of the longest label that may be turned back
        self.longest = 0

    def leave_out(self, text: str) -> None:
        """What looks like a label in a text of the caller's own stands for nothing that is found now."""
        if "[" in text:
            self._taken.update(_LABEL.findall(text))

    def of(self, entity_type: str, value: str, *, reversible: bool = False) -> str:
        kind = _UNFIT.sub("_", entity_type.upper()).strip("_") or "REDACTED"
        label = self._by_value.get((kind, value))
        if label is None:
            label = self._by_value[kind, value] = self._next(kind)
        if reversible and label not in self.values:
            self.values[label] = value
            self.longest = max(self.longest, len(label))
        return label

    def _next(self, kind: str) -> str:
        while True:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            label = f"[{kind}_{number}]"
            if label not in self._taken:
                return label
