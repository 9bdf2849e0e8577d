"""What stands between texts that are looked at together."""

from typing import Final

#: Nothing goes over its line breaks, nor does a match of built-in patterns.
SEPARATOR: Final = "\n\x1e\n"
#: Between texts that are each a whole: shapes know the beginning and the end of one also within a longer text. No
#: character is in both, so that matches of two texts that follow each other do not overlap.
TEXT_BEGINS: Final = "\x1d\n"
TEXT_ENDS: Final = "\n\x1f"
BETWEEN_TEXTS: Final = TEXT_ENDS + TEXT_BEGINS
