"""Computes the first position in an incomplete text from which a match may still begin or grow. The text before this
position can be passed on.

The computed position may be too early, but is never too late. How it is computed depends on the shape:

- If a shape begins with a literal, its regex is matched at each place where the literal occurs.
- If a match of a shape contains no blanks, it begins in the run of non-blank characters at the end of the text, or at
  the character before this run.
- For the other shapes, the regexes for incomplete texts (`re2_syntax.unfinished`) are combined into one search. RE2
  runs its automaton backwards from the end of the text. The automaton is small, because it works on the skeleton of the
  text (`regex.skeleton`) and treats large repetition counts as unbounded.

`openings` limits how much text is held back. This module ignores context words that may follow a complete match.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import re2

from gatehouse.detection.normalise import View
from gatehouse.detection.normalise.spaced import BEGUN_ROWS
from gatehouse.detection.pattern import Shape
from gatehouse.detection.regex import re2_syntax
from gatehouse.detection.regex.byte_search import (
    ANYWHERE,
    HERE,
    Search,
    search_of,
)
from gatehouse.detection.regex.skeleton import SKELETON, any_skeleton
from gatehouse.detection.search import matching
from gatehouse.detection.search.beginnings import (
    has_no_blanks,
    has_word,
    near_beginnings,
    repeats_blanks,
)
from gatehouse.detection.separator import TEXT_BEGINS

#: Repetition counts above this limit are treated as unbounded in a combined search for many shapes.
_MAX_REPETITIONS: Final = 8
#: The same limit for the search for a single shape.
_MAX_REPETITIONS_OF_ONE: Final = 64
#: A run of non-blank characters, and the character before it. The last two characters of the class are the Unicode
#: letters that equal `s` and `k` when case is ignored.
_RUN: Final = rf"(?s:.)?[!-~{matching.UNDERSCORE}\x{{17f}}\x{{212a}}]*"
#: The skeleton of two words of prose.
_TWO_WORDS: Final = b"aaaa aaaa"
_TEXT_BEGINS: Final = TEXT_BEGINS.encode()
#: How the skeleton of a regex begins if the regex matches only at the beginning of a text.
_TEXT_START_SKELETONS: Final = (r"\A", str(any_skeleton(f"(?:^|{TEXT_BEGINS})")))
#: Characters that are rare in prose. Most matches contain one, and so does each value with separated characters.
_RARE_IN_PROSE: Final = search_of(re2.compile("|".join((r"[0-9\"'@:/\\=<>$%&*+_{}\[\]|~^`#]", *BEGUN_ROWS))))


class _LiteralShape:
    """A shape whose matches begin with a literal."""

    __slots__ = ("_search", "may_follow_first")

    def __init__(self, shape: Shape, *, may_follow_first: bool) -> None:
        #: true if the literal may be at the second character of a match
        self.may_follow_first = may_follow_first
        regex = _unfinished(matching.searched_regex(shape), _MAX_REPETITIONS_OF_ONE)
        self._search = _compiled(regex, ignore_case=shape.ignore_case)

    def may_grow(self, known: bytes, begin: int) -> bool:
        """Return whether a match that begins at `begin` may extend beyond the known text."""
        return self._search(HERE, known, begin, len(known))[0][1] == len(known)


class Growth:
    """Searches for matches that may still grow. It is compiled once, when the patterns are loaded, and is
    thread-safe."""

    def __init__(self, shapes: Iterable[Shape], *, splits_at_underscore: bool) -> None:
        self._splits = splits_at_underscore
        literal_shapes: dict[str, list[_LiteralShape]] = {}
        in_word: dict[str, bool] = {}
        grow: set[str] = {_RUN}
        words: set[str] = set()
        at_text_start: set[str] = set()
        for shape in shapes:
            regex = matching.searched_regex(shape)
            written = f"(?i:{regex})" if shape.ignore_case else regex
            literals, may_follow_first = near_beginnings(regex)
            if literals:
                literal_shape = _LiteralShape(shape, may_follow_first=may_follow_first)
                for literal in literals:
                    key = _before_blank(literal.lower())
                    literal_shapes.setdefault(key, []).append(literal_shape)
                    begins_word = regex.startswith((r"\b", r"(?i)\b")) and literal[0].isalnum()
                    in_word[key] = in_word.get(key, False) or not begins_word
                continue
            outline = any_skeleton(regex, ignore_case=shape.ignore_case)
            if has_no_blanks(regex):
                continue
            if outline is None or (has_word(regex) and _matches_prose(regex, outline)):
                words.add(_unfinished(written, _MAX_REPETITIONS_OF_ONE))
            else:
                (at_text_start if outline.startswith(_TEXT_START_SKELETONS) else grow).add(_unfinished(outline))
        # A literal without blanks that is cut off at the end of the text is covered by `_RUN`.
        words.update(f"(?i:{_unfinished(re2.escape(literal))})" for literal in literal_shapes if not _is_run(literal))
        openings = [("" if inside else r"\b") + re2.escape(literal) for literal, inside in in_word.items()]
        self._literal_shapes = _with_prefixes(literal_shapes)
        self._literals = _compiled("|".join(openings), ignore_case=True) if openings else None
        self._grow = _at_end(grow)
        self._words = _at_end(words)
        self._at_text_start = _at_end(at_text_start)

    def growing(self, view: View, first: int, end: int) -> int:
        """Return the position of the first character from `first` on that may begin a match reaching beyond `end`.
        Return `end` if there is none."""
        known = view.data[: view.byte(end)]
        if self._splits:
            known = known.translate(matching.UNDERSCORES)
        outline = known.translate(SKELETON)
        start, size = view.byte(first), len(known)
        lowest = size
        for search, text in (
            (self._grow, outline),
            (self._words, known),
            (None if start and known.find(_TEXT_BEGINS, start) < 0 else self._at_text_start, outline),
        ):
            if search is not None and 0 <= (place := search(ANYWHERE, text, start, size)[0][0]) < lowest:
                lowest = place
        place = start
        # A literal at `lowest` may belong to a match that begins before it.
        while self._literals is not None and place <= lowest and place < size:
            begin, stop = self._literals(ANYWHERE, known, place, size)[0]
            if not 0 <= begin <= lowest:
                break
            if (place := self._unfinished_from(known, begin, stop, start)) >= 0:
                lowest = place
            place = begin + 1
        return view.character(lowest) if lowest < size else end

    def _unfinished_from(self, known: bytes, begin: int, stop: int, start: int) -> int:
        """Return the start of a match that may grow and that has its literal from `begin` to `stop`, or -1 if there is
        none."""
        before = begin - 1
        while before > start and known[before] & 0xC0 == 0x80:
            before -= 1
        shapes = self._literal_shapes.get(known[begin:stop].decode().lower())
        if shapes is None:
            # The literal is written with a Unicode letter that equals `s` or `k` when case is ignored.
            return begin
        if before >= start and any(
            literal_shape.may_follow_first and literal_shape.may_grow(known, before) for literal_shape in shapes
        ):
            return before
        if any(literal_shape.may_grow(known, begin) for literal_shape in shapes):
            return begin
        return -1


def _matches_prose(regex: str, outline: str) -> bool:
    """Return whether the regex for incomplete texts matches the skeleton of any two words."""
    if repeats_blanks(regex, _MAX_REPETITIONS):
        return True
    search = _compiled(rf"(?:{_unfinished(outline)})\z")
    return 0 <= search(ANYWHERE, _TWO_WORDS, 0, len(_TWO_WORDS))[0][0] < _TWO_WORDS.index(b" ")


def has_rare_characters(text: bytes) -> bool:
    """Return whether a text contains characters that are rare in prose, such as digits and quotes."""
    return _RARE_IN_PROSE(ANYWHERE, text, 0, len(text))[0][0] >= 0


def _with_prefixes(literal_shapes: Mapping[str, Sequence[_LiteralShape]]) -> dict[str, list[_LiteralShape]]:
    """Map each literal to the shapes that may match at its place: its own shapes, those of its prefixes, and those of
    longer literals that begin with it."""
    related = {literal: [literal] for literal in literal_shapes}
    for literal in literal_shapes:
        for end in range(len(literal)):
            prefix = literal[:end]
            if prefix in related:
                related[prefix].append(literal)
                related[literal].append(prefix)
    return {
        literal: [shape for other in others for shape in literal_shapes[other]] for literal, others in related.items()
    }


def _is_run(literal: str) -> bool:
    return all("!" <= character <= "~" or character == matching.UNDERSCORE for character in literal)


def _before_blank(literal: str) -> str:
    """Return the part of a literal before its first blank, if it is distinctive enough."""
    before = literal.partition(" ")[0]
    return before if len(before) > 2 and before.isascii() else literal


def _at_end(regexes: Iterable[str]) -> Search | None:
    joined = "|".join(sorted(regexes))
    return _compiled(rf"(?:{joined})\z") if joined else None


def _unfinished(regex: str, limit: int = _MAX_REPETITIONS) -> str:
    return f"(?:{re2_syntax.unfinished(_without_large_bounds(regex, limit))})"


def _without_large_bounds(regex: str, limit: int) -> list[re2_syntax.Token]:
    """Return the tokens of `regex`. A repetition whose maximum count exceeds `limit` is replaced by `*`."""
    return [
        token._replace(text="*") if token.kind is re2_syntax.TokenKind.REPEAT and token.most > limit else token
        for token in re2_syntax.without_groups(re2_syntax.tokens(regex))
    ]


def _compiled(regex: str, *, ignore_case: bool = False) -> Search:
    options = matching.options(ignore_case=ignore_case)
    options.never_capture = True
    return search_of(re2.compile(regex, options))
