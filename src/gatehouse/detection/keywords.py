"""Word lists: whether any of many keywords stands in a text, whatever the case, in one pass.

Keywords and text are compared as the patterns see them (`normalise`): what is not drawn is gone, full-width letters and
look-alikes are plain ones. Blanks in a keyword stand for any white space.

A keyword stands by itself: where it begins or ends with a letter or a digit, none precedes or follows it. Scripts that
write words without blanks between them (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) have no such edges: there a
keyword is found anywhere. So `cat` is in `Cat!` and `my_cat` and not in `concatenate`, and `C++` is in `C++20`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import re2

from gatehouse.detection import matching
from gatehouse.detection.normalise import View, seen
from gatehouse.detection.normalise.escapes import nested_view
from gatehouse.detection.searching import ANYWHERE, search_of

#: Code points a passage.
SLICE: Final = 32 * 1024

_UNSPACED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_EDGE: Final = rf"(?:[^\pL\pN\pM]|[{_UNSPACED}])"
_ends_in_word: Final = re2.compile(r"[\pL\pN\pM]\z")
_begins_in_word: Final = re2.compile(r"\A[\pL\pN\pM]")
_unspaced: Final = re2.compile(rf"[{_UNSPACED}]")
_MEMORY: Final = 16 << 20
#: How much white space within a keyword may lie across the end of a passage.
_BLANKS: Final = 4_096
#: A letter, so that the end of a passage is no word's end.
_GOES_ON: Final = "x"


def folded(keyword: str) -> str:
    """A keyword as it is looked for; empty where nothing of it is seen."""
    return " ".join(seen(keyword, json_escapes=False).text.split())


class Keywords:
    """Compiled once, when a policy is loaded. Keywords of which nothing is seen are left out."""

    def __init__(self, keywords: Iterable[str]) -> None:
        known = sorted({word for keyword in keywords if (word := folded(keyword))})
        self.longest = max(map(len, known), default=0)
        self._matches = [search_of(re2.compile(_regex(chunk), _options())) for chunk in matching.chunks(known)]

    def within(self, passage: bytes) -> bool:
        """Whether one of them is in a passage of `passages`."""
        return any(match(ANYWHERE, passage, 0, len(passage))[0][0] >= 0 for match in self._matches)


def passages(text: str, longest: int, *, json_escapes: bool = False) -> Iterator[bytes]:
    """`text` as it is searched, in pieces that overlap so that no keyword of up to `longest` characters is cut: a
    piece takes a millisecond or two. A piece with backslash escapes is followed by what they stand for. `json_escapes`:
    the text is JSON as written."""
    before, start = "", 0
    while True:
        end = _cut(text, start)
        piece = before + seen(text[start:end], json_escapes=json_escapes).text
        final = end == len(text)
        nested = nested_view(View(piece), final=True)
        for written in (piece,) if nested is None else (piece, nested.view.text):
            yield (written if final else written + _GOES_ON).encode("utf-8", "replace")
        if final:
            return
        # White space may be long, and counts as one blank.
        last = re.sub(r"\s+", " ", piece[-_BLANKS - longest :])
        before, start = _GOES_ON + last[-longest - 1 :], end


def _cut(text: str, start: int) -> int:
    """The end of the piece from `start` on: behind a blank where there is one nearby."""
    end = start + SLICE
    if end >= len(text):
        return len(text)
    blank = max(text.rfind(" ", end - 1_024, end), text.rfind("\n", end - 1_024, end))
    return end if blank < 0 else blank + 1


def _regex(keywords: Iterable[str]) -> str:
    by_edges: dict[tuple[bool, bool], list[str]] = {}
    for keyword in keywords:
        written = r"\s+".join(map(re2.escape, keyword.split(" ")))
        by_edges.setdefault((_begins_word(keyword), _ends_word(keyword)), []).append(written)
    return "|".join(
        f"{f'(?:^|{_EDGE})' if begins else ''}(?:{'|'.join(words)}){f'(?:$|{_EDGE})' if ends else ''}"
        for (begins, ends), words in by_edges.items()
    )


def _begins_word(keyword: str) -> bool:
    return bool(_begins_in_word.search(keyword)) and not _unspaced.search(keyword[0])


def _ends_word(keyword: str) -> bool:
    return bool(_ends_in_word.search(keyword)) and not _unspaced.search(keyword[-1])


def _options() -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MEMORY
    return options
