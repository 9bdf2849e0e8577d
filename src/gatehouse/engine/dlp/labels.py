"""Labels that replace redacted values, such as `[CREDIT_CARD_1]`. Within a request, the same value always has the same
label.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_INVALID_LABEL_CHARACTERS = re.compile(r"[^A-Z0-9]+")
_LABEL = re.compile(r"\[[A-Z0-9_]+\]")

NO_LABEL_NUMBERS: Final[Mapping[str, int]] = MappingProxyType({})


class Labels:
    """The labels of one request. The labels of each entity type are numbered in the order in which their values occur.
    `last_numbers` maps an entity type to the highest number already used; numbering continues from there."""

    __slots__ = ("_by_value", "_reserved", "_unsearched_texts", "last_numbers", "max_length", "originals_by_label")

    def __init__(self, last_numbers: Mapping[str, int] = NO_LABEL_NUMBERS) -> None:
        self._by_value: dict[tuple[str, str], str] = {}
        #: Highest label number used so far, keyed by the entity type in its label spelling (for example `CREDIT_CARD`).
        self.last_numbers: dict[str, int] = dict(last_numbers)
        self._reserved: set[str] = set()
        self._unsearched_texts: list[str] = []
        #: Original values of the reversible labels, keyed by label.
        self.originals_by_label: dict[str, str] = {}
        #: Length of the longest reversible label in code points.
        self.max_length = 0

    def reserve_labels_in(self, text: str) -> None:
        """Reserve the strings of a caller's text that look like labels, so that this request does not use them as
        labels."""
        if "[" in text:
            # The text is searched only when a label is needed, because most requests need none.
            self._unsearched_texts.append(text)

    def label_for(self, entity_type: str, value: str, *, reversible: bool = False) -> str:
        """Return the label of a value. If `reversible` is true, the label is replaced with the original value in the
        model's response."""
        label_type = _INVALID_LABEL_CHARACTERS.sub("_", entity_type.upper()).strip("_") or "REDACTED"
        label = self._by_value.get((label_type, value))
        if label is None:
            label = self._by_value[label_type, value] = self._next(label_type)
        if reversible and label not in self.originals_by_label:
            self.originals_by_label[label] = value
            self.max_length = max(self.max_length, len(label))
        return label

    def _next(self, label_type: str) -> str:
        while self._unsearched_texts:
            self._reserved.update(_LABEL.findall(self._unsearched_texts.pop()))
        while True:
            number = self.last_numbers[label_type] = self.last_numbers.get(label_type, 0) + 1
            label = f"[{label_type}_{number}]"
            if label not in self._reserved:
                return label
