"""Separators of texts that are scanned together."""

from typing import Final

#: No built-in pattern matches across its line breaks, nor does a joined line.
SEPARATOR: Final = "\n\x1e\n"
#: Separators of complete texts. Shapes that are anchored to the ends of a text match at them too. The two have no
#: character in common, so that matches of adjacent texts do not overlap.
TEXT_BEGINS: Final = "\x1d\n"
TEXT_ENDS: Final = "\n\x1f"
BETWEEN_TEXTS: Final = TEXT_ENDS + TEXT_BEGINS
