"""Searches a text for many keywords in one pass, ignoring case.

Keywords and text are normalised in the same way as for patterns (`normalise`). Invisible characters are removed, and
full-width letters and look-alikes are replaced by plain letters. A blank in a keyword matches any white space.

If a keyword begins or ends with a letter or digit, no letter or digit may be adjacent to this end of a match. For
example, `cat` matches in `Cat!` and `my_cat`, but not in `concatenate`, and `C++` matches in `C++20`. This rule does
not apply to letters of scripts that write no blanks between words (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese)."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import re2

from gatehouse.detection.normalise import View, seen
from gatehouse.detection.normalise.escapes import nested_view
from gatehouse.detection.regex.byte_search import ANYWHERE, search_of
from gatehouse.detection.search import matching

#: Approximate length of a passage in code points.
SLICE_CHARACTERS: Final = 32 * 1024

_UNSPACED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_EDGE: Final = rf"(?:[^\pL\pN\pM]|[{_UNSPACED}])"
_ends_in_word: Final = re2.compile(r"[\pL\pN\pM]\z")
_begins_in_word: Final = re2.compile(r"\A[\pL\pN\pM]")
_unspaced: Final = re2.compile(rf"[{_UNSPACED}]")
_MAX_MEMORY_BYTES: Final = 16 << 20
#: Maximum white space, in characters, within a match that lies across the end of a passage.
_MAX_OVERLAP_CHARACTERS: Final = 4_096
#: A letter that is added to an incomplete passage, so that the cut is not treated as the beginning or end of a word.
_CONTINUATION: Final = "x"


def folded(keyword: str) -> str:
    """Return a keyword in its normalised form. The result is empty if the keyword has no visible characters."""
    return " ".join(seen(keyword, json_escapes=False).text.split())


class Keywords:
    """A compiled keyword list. It is compiled once, when a policy is loaded. Keywords without visible characters are
    ignored."""

    def __init__(self, keywords: Iterable[str]) -> None:
        folded_keywords = sorted({word for keyword in keywords if (word := folded(keyword))})
        self.longest = max(map(len, folded_keywords), default=0)
        self._searches = [
            search_of(re2.compile(_regex(chunk), _options())) for chunk in matching.chunks(folded_keywords)
        ]

    def within(self, passage: bytes) -> bool:
        """Return whether a keyword occurs in a passage that `passages` returned."""
        return any(search(ANYWHERE, passage, 0, len(passage))[0][0] >= 0 for search in self._searches)


def passages(text: str, longest: int, *, json_escapes: bool = False) -> Iterator[bytes]:
    """Yield the normalised text in passages. Consecutive passages overlap, so that no keyword of up to `longest`
    characters is cut. The search of a passage takes one or two milliseconds. A passage with backslash escapes is
    followed by its unescaped form. `json_escapes` means that the text is raw JSON."""
    before, start = "", 0
    while True:
        end = _passage_end(text, start)
        piece = before + seen(text[start:end], json_escapes=json_escapes).text
        is_last = end == len(text)
        nested = nested_view(View(piece), final=True)
        for passage in (piece,) if nested is None else (piece, nested.view.text):
            yield (passage if is_last else passage + _CONTINUATION).encode("utf-8", "replace")
        if is_last:
            return
        # A run of white space is treated as one blank.
        tail = re.sub(r"\s+", " ", piece[-_MAX_OVERLAP_CHARACTERS - longest :])
        before, start = _CONTINUATION + tail[-longest - 1 :], end


def _passage_end(text: str, start: int) -> int:
    """Return the end of the passage that begins at `start`. A passage ends after a blank, if one is near its end."""
    end = start + SLICE_CHARACTERS
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
    options.max_mem = _MAX_MEMORY_BYTES
    return options
