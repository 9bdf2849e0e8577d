"""Separators of texts that are scanned together."""

from typing import Final

#: Separates parts of one text. No built-in pattern matches across it, and its line breaks are never removed to join
#: lines.
SEPARATOR: Final = "\n\x1e\n"
#: Mark the beginning and the end of a complete text that is scanned together with others. Shapes that are anchored to
#: the beginning or end of a text also match at these marks. Between two texts, each of the two marks has its own
#: characters, so that matches in adjacent texts do not overlap.
TEXT_BEGINS: Final = "\x1d\n"
TEXT_ENDS: Final = "\n\x1f"
BETWEEN_TEXTS: Final = TEXT_ENDS + TEXT_BEGINS
