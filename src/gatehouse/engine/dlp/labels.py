"""What stands in the place of a redacted value: `[CREDIT_CARD_1]`, the same value the same label within a request."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_UNFIT = re.compile(r"[^A-Z0-9]+")
_LABEL = re.compile(r"\[[A-Z0-9_]+\]")

NO_LABEL_NUMBERS: Final[Mapping[str, int]] = MappingProxyType({})


class Labels:
    """One request's, and gone with it. Numbers count by entity type, in the order of appearance, after `numbers` that
    were given before."""

    __slots__ = ("_by_value", "_taken", "_unread", "max_length", "numbers", "values")

    def __init__(self, numbers: Mapping[str, int] = NO_LABEL_NUMBERS) -> None:
        self._by_value: dict[tuple[str, str], str] = {}
        #: the highest number given, by entity type as labels write it
        self.numbers: dict[str, int] = dict(numbers)
        self._taken: set[str] = set()
        self._unread: list[str] = []
        #: the values that may be turned back, by label
        self.values: dict[str, str] = {}
        #: code points of the longest label that may be turned back
        self.max_length = 0

    def reserve_labels_in(self, text: str) -> None:
        """What looks like a label in a text of the caller's own stands for nothing that is found now."""
        if "[" in text:
            # Looked through when there is something to number: most requests have nothing.
            self._unread.append(text)

    def label_for(self, entity_type: str, value: str, *, reversible: bool = False) -> str:
        kind = _UNFIT.sub("_", entity_type.upper()).strip("_") or "REDACTED"
        label = self._by_value.get((kind, value))
        if label is None:
            label = self._by_value[kind, value] = self._next(kind)
        if reversible and label not in self.values:
            self.values[label] = value
            self.max_length = max(self.max_length, len(label))
        return label

    def _next(self, kind: str) -> str:
        while self._unread:
            self._taken.update(_LABEL.findall(self._unread.pop()))
        while True:
            number = self.numbers[kind] = self.numbers.get(kind, 0) + 1
            label = f"[{kind}_{number}]"
            if label not in self._taken:
                return label
