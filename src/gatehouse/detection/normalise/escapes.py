"""JSON text as it arrives, in pieces: what its escapes stand for."""

import re
from typing import Final

from gatehouse.detection.normalise.view import View, spliced

_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r'|u(?P<code>[0-9a-fA-F]{4})|(?P<simple>["\\/bfnrt]))'
)
_SIMPLE: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
#: An escape, or a pair of them, that has begun and may go on.
_BEGUN: Final = re.compile(r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?\Z")
_LONGEST: Final = 12


def unescaped(text: str) -> View | None:
    """None where there are no escapes. `text` does not begin within an escape."""
    if "\\" not in text:
        return None
    pieces = ((found.start(), found.end(), _meaning(found)) for found in _ESCAPE.finditer(text))
    return spliced(text, pieces)


def begun(text: str) -> int:
    """From where on `text` may be the beginning of an escape; its length where it is not."""
    edge = max(0, len(text) - _LONGEST)
    if "\\" not in text[edge:]:
        return len(text)
    # Escapes are read from the front: the last backslash may itself be escaped.
    behind = edge
    while behind and text[behind - 1] == "\\":
        behind -= 1
    for found in _ESCAPE.finditer(text, behind):
        behind = found.end()
    last = _BEGUN.search(text, behind)
    return last.start() if last else len(text)


def _meaning(found: re.Match[str]) -> str:
    if found["simple"]:
        return _SIMPLE.get(found["simple"], found["simple"])
    if found["code"]:
        return chr(int(found["code"], 16))
    return chr(0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(found["low"], 16) - 0xDC00)
