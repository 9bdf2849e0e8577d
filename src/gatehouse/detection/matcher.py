"""Many patterns compiled into one `Matcher` for one text. `scanning` searches a text with several matchers."""

from collections.abc import Iterator

from gatehouse.detection.findings import Finding
from gatehouse.detection.rules import BadPattern, Rules
from gatehouse.detection.scanning import texts

__all__ = ["BadPattern", "Matcher"]


class Matcher(Rules):
    """A set of compiled patterns. Compiled when patterns are loaded, never in a request: the built-in ones once a
    process, an organization's own ones in a second matcher."""

    def scan(self, text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False) -> list[Finding]:
        return texts.scan((self,), text, pos=pos, decoded=decoded, json_escapes=json_escapes)

    def scan_in_slices(
        self, text: str, *, pos: int = 0, decoded: bool = True, json_escapes: bool = False
    ) -> Iterator[list[Finding]]:
        return texts.scan_in_slices((self,), text, pos=pos, decoded=decoded, json_escapes=json_escapes)
