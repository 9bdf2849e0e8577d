"""Labels that replace redacted values, such as `[CREDIT_CARD_1]`. Within a request, the same value always has the same
label.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_NOT_IN_LABELS = re.compile(r"[^A-Z0-9]+")
_LABEL = re.compile(r"\[[A-Z0-9_]+\]")

NO_LABEL_NUMBERS: Final[Mapping[str, int]] = MappingProxyType({})


class Labels:
    """The labels of one request. Labels are numbered by entity type in the order of their appearance. Numbering
    continues after `numbers`, the highest numbers used before."""

    __slots__ = ("_by_value", "_reserved", "_unsearched_texts", "max_length", "numbers", "values")

    def __init__(self, numbers: Mapping[str, int] = NO_LABEL_NUMBERS) -> None:
        self._by_value: dict[tuple[str, str], str] = {}
        #: the highest number used, by entity type as it is spelled in labels
        self.numbers: dict[str, int] = dict(numbers)
        self._reserved: set[str] = set()
        self._unsearched_texts: list[str] = []
        #: the original values of reversible labels, by label
        self.values: dict[str, str] = {}
        #: length of the longest reversible label in code points
        self.max_length = 0

    def reserve_labels_in(self, text: str) -> None:
        """Reserve the strings of a caller's text that look like labels, so that this request does not use them as
        labels."""
        if "[" in text:
            # The text is searched only when a label is needed, because most requests need none.
            self._unsearched_texts.append(text)

    def label_for(self, entity_type: str, value: str, *, reversible: bool = False) -> str:
        """Return the label of a value. If `reversible`, the value replaces the label again in the answer."""
        kind = _NOT_IN_LABELS.sub("_", entity_type.upper()).strip("_") or "REDACTED"
        label = self._by_value.get((kind, value))
        if label is None:
            label = self._by_value[kind, value] = self._next(kind)
        if reversible and label not in self.values:
            self.values[label] = value
            self.max_length = max(self.max_length, len(label))
        return label

    def _next(self, kind: str) -> str:
        while self._unsearched_texts:
            self._reserved.update(_LABEL.findall(self._unsearched_texts.pop()))
        while True:
            number = self.numbers[kind] = self.numbers.get(kind, 0) + 1
            label = f"[{kind}_{number}]"
            if label not in self._reserved:
                return label
