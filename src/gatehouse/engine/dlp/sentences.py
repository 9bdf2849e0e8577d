"""Cutting text into sentences as it comes, the same way in however many pieces: what the entities tier reads."""

import re
from typing import Final

#: A sentence that is longer is cut at its last space, or where it is.
LONGEST: Final = 600

_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\]\u201d\u2019]*\s+|\n+")


def complete_sentences(text: str, *, final: bool) -> list[tuple[int, int]]:
    """The whole sentences at the text's beginning, as offsets; with `final` the rest is one too.

    An end counts only when something follows it, because what ends a sentence may go on in the next piece.
    """
    found: list[tuple[int, int]] = []
    start = 0
    for end in _END.finditer(text):
        if end.end() == len(text) and not final:
            break
        found += _cut(text, start, end.end())
        start = end.end()
    while not final and len(text) - start > LONGEST + 1:
        stop = _stop(text, start)
        found.append((start, stop))
        start = stop
    if final and start < len(text):
        found += _cut(text, start, len(text))
    return found


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while end - start > LONGEST + 1:
        stop = _stop(text, start)
        pieces.append((start, stop))
        start = stop
    pieces.append((start, end))
    return pieces


def _stop(text: str, start: int) -> int:
    space = text.rfind(" ", start, start + LONGEST)
    return space + 1 if space > start else start + LONGEST
