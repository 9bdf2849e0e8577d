"""Many patterns compiled into one `Matcher` for one text. `scanning` searches a text with several matchers."""

from collections.abc import Iterator

from gatehouse.detection import scanning
from gatehouse.detection.findings import Finding
from gatehouse.detection.rules import BadPattern, Rules

__all__ = ["BadPattern", "Matcher"]


class Matcher(Rules):
    """A set of compiled patterns. Compiled when patterns are loaded, never in a request: the built-in ones once a
    process, an organization's own ones in a second matcher."""

    def scan(self, text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False) -> list[Finding]:
        return scanning.scan((self,), text, pos=pos, decoded=decoded, json_escapes=json_escapes)

    def scan_in_slices(
        self, text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
    ) -> Iterator[list[Finding]]:
        return scanning.scan_in_slices((self,), text, pos=pos, decoded=decoded, json_escapes=json_escapes)
