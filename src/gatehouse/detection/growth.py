"""From where in a text that goes on a match may still begin or grow: what is before it can be passed on.

On the safe side, and exact where that costs little:

- A shape that begins with a literal is asked where the literal stands.
- One without blanks begins in the run of characters without blanks at the end, or right before it.
- What others may begin with (`re2_syntax.unfinished`) is searched for together, by an automaton that RE2 runs backwards
  from the end. It is small over the skeleton of a text, and where many repetitions count as endless.

What that holds back too long is bounded by `openings`. That a context word may follow a whole match is not seen here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import re2

from gatehouse.detection import matching, re2_syntax
from gatehouse.detection.beginnings import holds_word, is_without_blanks, near_beginnings, repeats_blanks
from gatehouse.detection.normalise import View
from gatehouse.detection.normalise.spaced import BEGUN_ROWS
from gatehouse.detection.pattern import Shape
from gatehouse.detection.searching import ANYWHERE, HERE, Search, search_of
from gatehouse.detection.separator import TEXT_BEGINS
from gatehouse.detection.skeleton import SKELETON, any_skeleton

#: More repetitions count as endless: in a search for many shapes, and for one.
_MOST_REPETITIONS: Final = 8
_MOST_REPETITIONS_OF_ONE: Final = 64
#: A run without blanks, and what a match in it may begin with. The last two are an `s` and a `k`, whatever the case.
_RUN: Final = rf"(?s:.)?[!-~{matching.UNDERSCORE}\x{{17f}}\x{{212a}}]*"
#: The outline of prose.
_TWO_WORDS: Final = b"aaaa aaaa"
_TEXT_BEGINS: Final = TEXT_BEGINS.encode()
#: How the outline begins of what matches at the beginning of a text alone.
_OF_ALL: Final = (r"\A", str(any_skeleton(f"(?:^|{TEXT_BEGINS})")))
#: What prose has little of, and what most matches and all rows of single characters have.
_STRIKING: Final = search_of(re2.compile("|".join((r"[0-9\"'@:/\\=<>$%&*+_{}\[\]|~^`#]", *BEGUN_ROWS))))


class _Led:
    """A shape whose matches begin with a literal."""

    __slots__ = ("_search", "behind_first")

    def __init__(self, shape: Shape, *, behind_first: bool) -> None:
        #: the literal may stand behind the first character of a match
        self.behind_first = behind_first
        written = _unfinished(matching.searched(shape), _MOST_REPETITIONS_OF_ONE)
        self._search = _compiled(written, ignore_case=shape.ignore_case)

    def may_grow(self, known: bytes, begin: int) -> bool:
        """Whether a match that begins there may go on behind what is known."""
        return self._search(HERE, known, begin, len(known))[0][1] == len(known)


class Growth:
    """Compiled once, when patterns are loaded; may be used by many threads."""

    def __init__(self, shapes: Iterable[Shape], *, splits_at_underscore: bool) -> None:
        self._splits = splits_at_underscore
        led: dict[str, list[_Led]] = {}
        in_word: dict[str, bool] = {}
        grow: set[str] = {_RUN}
        letters: set[str] = set()
        of_all: set[str] = set()
        for shape in shapes:
            regex = matching.searched(shape)
            written = f"(?i:{regex})" if shape.ignore_case else regex
            literals, behind_first = near_beginnings(regex)
            if literals:
                each = _Led(shape, behind_first=behind_first)
                for literal in literals:
                    key = _before_blank(literal.lower())
                    led.setdefault(key, []).append(each)
                    begins_word = regex.startswith((r"\b", r"(?i)\b")) and literal[0].isalnum()
                    in_word[key] = in_word.get(key, False) or not begins_word
                continue
            outline = any_skeleton(regex, ignore_case=shape.ignore_case)
            if is_without_blanks(regex):
                continue
            if outline is None or (holds_word(regex) and _goes_over_words(regex, outline)):
                letters.add(_unfinished(written, _MOST_REPETITIONS_OF_ONE))
            else:
                (of_all if outline.startswith(_OF_ALL) else grow).add(_unfinished(outline))
        # A literal that has only begun stands in a run without blanks.
        letters.update(f"(?i:{_unfinished(re2.escape(literal))})" for literal in led if not _is_run(literal))
        openings = [("" if inside else r"\b") + re2.escape(literal) for literal, inside in in_word.items()]
        self._led = _alike(led)
        self._literals = _compiled("|".join(openings), ignore_case=True) if openings else None
        self._grow = _at_end(grow)
        self._letters = _at_end(letters)
        self._of_all = _at_end(of_all)

    def growing(self, view: View, first: int, end: int) -> int:
        """The first character from `first` on, or `end`, from which a match may begin or grow beyond `end`."""
        known = view.data[: view.byte(end)]
        if self._splits:
            known = known.translate(matching.UNDERSCORES)
        outline = known.translate(SKELETON)
        start, size = view.byte(first), len(known)
        lowest = size
        for search, text in (
            (self._grow, outline),
            (self._letters, known),
            (None if start and known.find(_TEXT_BEGINS, start) < 0 else self._of_all, outline),
        ):
            if search is not None and 0 <= (place := search(ANYWHERE, text, start, size)[0][0]) < lowest:
                lowest = place
        place = start
        # One that stands at `lowest` may be that of a match that begins before it.
        while self._literals is not None and place <= lowest and place < size:
            begin, stop = self._literals(ANYWHERE, known, place, size)[0]
            if not 0 <= begin <= lowest:
                break
            if (place := self._unfinished_from(known, begin, stop, start)) >= 0:
                lowest = place
            place = begin + 1
        return view.character(lowest) if lowest < size else end

    def _unfinished_from(self, known: bytes, begin: int, stop: int, start: int) -> int:
        """Where one of the shapes with the literal from `begin` to `stop` begins that may grow, or -1: none may."""
        before = begin - 1
        while before > start and known[before] & 0xC0 == 0x80:
            before -= 1
        shapes = self._led.get(known[begin:stop].decode().lower())
        if shapes is None:
            # Written with one of Unicode's other letters for an `s` or a `k`.
            return begin
        if before >= start and any(led.behind_first and led.may_grow(known, before) for led in shapes):
            return before
        if any(led.may_grow(known, begin) for led in shapes):
            return begin
        return -1


def _goes_over_words(regex: str, outline: str) -> bool:
    """Whether what may grow into a match is any few words as far as their outlines tell."""
    if repeats_blanks(regex, _MOST_REPETITIONS):
        return True
    search = _compiled(rf"(?:{_unfinished(outline)})\z")
    return 0 <= search(ANYWHERE, _TWO_WORDS, 0, len(_TWO_WORDS))[0][0] < _TWO_WORDS.index(b" ")


def is_striking(text: bytes) -> bool:
    """Whether a text has what prose has little of, such as digits and quotes."""
    return _STRIKING(ANYWHERE, text, 0, len(text))[0][0] >= 0


def _alike(led: Mapping[str, Sequence[_Led]]) -> dict[str, list[_Led]]:
    """The shapes by their literals, each with those of literals that it may be the beginning of, or they of it."""
    return {
        literal: [
            each
            for other, shapes in led.items()
            if other.startswith(literal) or literal.startswith(other)
            for each in shapes
        ]
        for literal in led
    }


def _is_run(literal: str) -> bool:
    return all("!" <= character <= "~" or character == matching.UNDERSCORE for character in literal)


def _before_blank(literal: str) -> str:
    """As much of a literal as stands without blanks, where that says enough."""
    before = literal.partition(" ")[0]
    return before if len(before) > 2 and before.isascii() else literal


def _at_end(regexes: Iterable[str]) -> Search | None:
    joined = "|".join(sorted(regexes))
    return _compiled(rf"(?:{joined})\z") if joined else None


def _unfinished(regex: str, most: int = _MOST_REPETITIONS) -> str:
    return f"(?:{re2_syntax.unfinished(_loose(regex, most))})"


def _loose(regex: str, most: int) -> list[re2_syntax.Token]:
    """`regex` with any number of repetitions where it takes more than `most`."""
    return [
        token._replace(text="*") if token.kind is re2_syntax.Kind.REPEAT and token.most > most else token
        for token in re2_syntax.without_groups(re2_syntax.tokens(regex))
    ]


def _compiled(regex: str, *, ignore_case: bool = False) -> Search:
    options = matching.options(ignore_case=ignore_case)
    options.never_capture = True
    return search_of(re2.compile(regex, options))
