"""Compiles patterns into a `Matcher` that can scan a text. The functions in `scanning` scan a text with several
matchers at once."""

from collections.abc import Iterator

from gatehouse.detection.findings import Finding
from gatehouse.detection.pattern_set import BadPattern, PatternSet
from gatehouse.detection.scanning import texts

__all__ = ["BadPattern", "Matcher"]


class Matcher(PatternSet):
    """A set of compiled patterns. Patterns are compiled when they are loaded, never during a request. The built-in
    patterns are compiled once in each process. An organization's own patterns are compiled into a second matcher."""

    def scan(self, text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False) -> list[Finding]:
        return texts.scan((self,), text, pos=pos, decoded=decoded, json_escapes=json_escapes)

    def scan_in_slices(
        self, text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
    ) -> Iterator[list[Finding]]:
        return texts.scan_in_slices((self,), text, pos=pos, decoded=decoded, json_escapes=json_escapes)
