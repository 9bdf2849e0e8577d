"""Defines the matches of one pattern in a text. This module is a short reference implementation; the fast matcher in
`pattern_set` returns the same findings.

Each match of a shape is processed as follows, in the order of the text:

1. The finding is the group `value` if the regex has one, otherwise the complete match. An empty finding is discarded.
2. The validator checks the finding. If it returns false, the finding is rejected. If it returns true, the score is
   `VALID_SCORE`. If it returns None, the score is the score of the shape.
3. A context word of the pattern near the finding adds `CONTEXT_BONUS` to the score, up to 1.0. Near means within
   `CONTEXT_CHARACTERS_BEFORE` code points before the finding or `CONTEXT_CHARACTERS_AFTER` code points after it. If the
   shape needs a context word and none is near, the finding is rejected.
4. If the text right before the finding matches the shape's `not_preceded_by`, or does not match its `preceded_by`, the
   finding is rejected. Only `CONTEXT_CHARACTERS_BEFORE` code points are examined.
5. The search continues after the match, so that findings of one shape do not overlap. After a rejected finding, the
   search continues after the first character of the match, so that a number with a wrong check digit does not hide
   another number that begins within it. This exception applies only to shapes of at most `NEAR_CHARACTERS` code points,
   because longer matches would be searched many times.

A shape that splits at underscores reads each `_` as `UNDERSCORE`, a control character that is not part of a word.

A context word must be a whole word: no ASCII letter may be adjacent to it, except a plural `s`. For example, `ssn`
counts in `user_ssn:` and `SSNs`, but not in `lessn`. The complete word must be near the finding, but its plural `s`
need not be. Thresholds are applied by the caller; only `find` applies the threshold of the pattern.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.pattern import (
    CONTEXT_BONUS,
    CONTEXT_CHARACTERS_AFTER,
    CONTEXT_CHARACTERS_BEFORE,
    NEAR_CHARACTERS,
    VALID_SCORE,
    Pattern,
    Shape,
    Validator,
)

#: A compiled `re2` object. The package has no types.
Regex: TypeAlias = Any

#: Maximum memory of an RE2 automaton, in bytes. RE2 refuses to compile a regex that needs more.
MAX_MEMORY_BYTES: Final = 8 << 20
_MAX_CHUNK_CHARACTERS: Final = 6_000
#: The character that replaces a `_` that separates words: the file separator, which almost never occurs in texts.
UNDERSCORE: Final = "\x1c"
#: Translation table for `bytes.translate` that replaces each `_` by `UNDERSCORE`.
UNDERSCORES: Final = bytes.maketrans(b"_", UNDERSCORE.encode())
_LATIN_EDGES: Final = re.compile(r"[a-z0-9](?:.*[a-z0-9])?\Z", re.DOTALL)
_CLASS_OR_UNDERSCORE: Final = re.compile(r"\\[wW]|\\.|\[\^?|\]|_", re.DOTALL)


class MatchSpan(NamedTuple):
    """The position of a finding, in code points of the searched text, and its score."""

    start: int
    end: int
    score: float


class CompiledShape(NamedTuple):
    """A shape with its compiled regexes."""

    regex: Regex
    #: number of the regex group that is the finding; 0 for the complete match
    group: int
    score: float
    validator: Validator | None
    needs_context: bool
    splits_at_underscore: bool
    #: true if the next match may begin within a rejected match
    tries_again: bool
    #: matches the context words of the pattern; None if the pattern has none
    context: Regex | None
    #: must not match the end of the text before a finding
    not_preceded_by: Regex | None
    #: must match the end of the text before a finding
    preceded_by: Regex | None


def options(*, ignore_case: bool = False) -> Any:
    """Return the RE2 options of all patterns. `^` and `$` match at line ends only with `(?m)`. RE2 raises errors and
    does not log them."""
    result = re2.Options()
    result.case_sensitive = not ignore_case
    result.log_errors = False
    result.max_mem = MAX_MEMORY_BYTES
    return result


def chunks(words: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words in lists. Each list is short enough for one RE2 automaton."""
    chunk: list[str] = []
    size = 0
    for word in words:
        if chunk and size + len(word) > _MAX_CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
        chunk.append(word)
        size += len(word)
    if chunk:
        yield chunk


def standing_alone(words: Iterable[str]) -> str:
    """Return a regex that matches each of `words` as a whole word, with the character on either side of it.

    The adjacent characters must not be ASCII letters. If the word begins and ends with an ASCII letter or digit, the
    adjacent characters must not be digits either, because a word next to a digit is part of a code (`3dea`,
    `EGK79060`). Only such a word may have a plural `s`. If the word ends in punctuation, any character may follow it
    (`dx:S72.0`)."""
    word_list = list(words)
    latin = [re2.escape(word) for word in word_list if _LATIN_EDGES.match(word)]
    closed = [re2.escape(word) for word in word_list if _ends_in_punctuation(word)]
    other = [re2.escape(word) for word in word_list if not (_LATIN_EDGES.match(word) or _ends_in_punctuation(word))]
    return "|".join(
        f"(?:^|{before})({'|'.join(alternatives)}){behind}"
        for before, alternatives, behind in (
            ("[^a-z0-9]", latin, "s?(?:[^a-z0-9]|$)"),
            ("[^a-z]", closed, r"(?:(?s:.)|$)"),
            ("[^a-z]", other, "(?:[^a-z]|$)"),
        )
        if alternatives
    )


def _ends_in_punctuation(word: str) -> bool:
    return word[-1].isascii() and not word[-1].isalnum()


def has_plural(word: str) -> bool:
    """Return whether a plural `s` may follow `word`, by the rules of `standing_alone`."""
    return _LATIN_EDGES.match(word) is not None


def may_follow(character: str, word: str) -> bool:
    """Return whether `character` may follow `word`, by the rules of `standing_alone`."""
    if not character.isascii() or not character.isalnum() or _ends_in_punctuation(word):
        return True
    return character.isdigit() and _LATIN_EDGES.match(word) is None


def compile_context(words: tuple[str, ...]) -> Regex | None:
    if not words:
        return None
    # Short words come first. If several words begin at one position, the shortest one is the most likely to end within
    # `CONTEXT_CHARACTERS_AFTER` code points.
    return re2.compile(standing_alone(sorted(words, key=len)), options(ignore_case=True))


def compile_shape(shape: Shape, context: Regex | None = None) -> CompiledShape:
    """Compile a shape. Raises `re2.error` with the message of RE2 if the regex is invalid."""
    regex = re2.compile(searched_regex(shape), options(ignore_case=shape.ignore_case))
    return CompiledShape(
        regex,
        regex.groupindex.get("value", 0),
        shape.score,
        shape.validator,
        shape.needs_context,
        shape.splits_at_underscore,
        shape.max_length <= NEAR_CHARACTERS,
        context,
        _at_end(shape.not_preceded_by),
        _at_end(shape.preceded_by),
    )


def _at_end(regex: str | None) -> Regex | None:
    return None if regex is None else re2.compile(f"(?:{regex})$", options(ignore_case=True))


def searched_regex(shape: Shape) -> str:
    """Return the regex that is searched for: the regex of the shape, rewritten if the shape splits at underscores."""
    return split_at_underscores(shape.regex) if shape.splits_at_underscore else shape.regex


def split_at_underscores(regex: str) -> str:
    """Return `regex` rewritten for texts in which each `_` is replaced by `UNDERSCORE`."""
    in_class = False

    def rewritten(token: re.Match[str]) -> str:
        nonlocal in_class
        if token[0] == "_":
            return UNDERSCORE
        if token[0] == r"\w":
            return f"0-9A-Za-z{UNDERSCORE}" if in_class else f"[0-9A-Za-z{UNDERSCORE}]"
        if token[0] == r"\W":
            if in_class:
                raise ValueError(rf"a regex that splits at underscores must not have \W in a character class: {regex}")
            return f"[^0-9A-Za-z{UNDERSCORE}]"
        if token[0][0] == "[" and not in_class:
            in_class = True
        elif token[0] == "]":
            in_class = False
        return token[0]

    return _CLASS_OR_UNDERSCORE.sub(rewritten, regex)


def compile_pattern(pattern: Pattern) -> tuple[CompiledShape, ...]:
    context = compile_context(pattern.context)
    return tuple(compile_shape(shape, context) for shape in pattern.shapes)


#: `find` is called many times with the same patterns.
_compiled = lru_cache(maxsize=256)(compile_pattern)


def in_context(compiled: CompiledShape, text: str, start: int, end: int) -> bool:
    """Return whether a context word is near the finding `text[start:end]`."""
    match = compiled.context.search(text) if compiled.context is not None else None
    while match is not None:
        first, stop = match.span(match.lastindex)
        if (start - CONTEXT_CHARACTERS_BEFORE <= first and stop <= start) or (
            end <= first and stop <= end + CONTEXT_CHARACTERS_AFTER
        ):
            return True
        match = match.re.search(text, match.start() + 1)
    return False


def allowed_before(compiled: CompiledShape, text: str, start: int) -> bool:
    """Return whether the text before `start` allows a finding there."""
    if compiled.not_preceded_by is None and compiled.preceded_by is None:
        return True
    # Decoded text may contain lone surrogates, which UTF-8 cannot encode.
    before = text[max(0, start - CONTEXT_CHARACTERS_BEFORE) : start].encode("utf-8", "replace")
    if compiled.not_preceded_by is not None and compiled.not_preceded_by.search(before):
        return False
    return compiled.preceded_by is None or bool(compiled.preceded_by.search(before))


def judge(compiled: CompiledShape, value: str, *, near: bool) -> float | None:
    """Return the score of `value`, or None if `value` is not a finding. `near` is true if a context word is near."""
    if compiled.needs_context and not near:
        return None
    verdict = None if compiled.validator is None else compiled.validator(value)
    if verdict is False:
        return None
    if verdict:
        return VALID_SCORE
    return min(1.0, compiled.score + CONTEXT_BONUS) if near else compiled.score


def spans(compiled: CompiledShape, text: str) -> Iterator[MatchSpan]:
    searched_text = text.replace("_", UNDERSCORE) if compiled.splits_at_underscore else text
    match = compiled.regex.search(searched_text)
    while match is not None:
        start, end = match.span(compiled.group)
        place = max(match.end(), match.start() + 1)
        if start < end:
            score = judge(compiled, text[start:end], near=in_context(compiled, text, start, end))
            if score is not None and allowed_before(compiled, text, start):
                yield MatchSpan(start, end, score)
            elif compiled.tries_again:
                place = match.start() + 1
        match = compiled.regex.search(searched_text, place) if place < len(text) else None


def find(pattern: Pattern, text: str) -> list[MatchSpan]:
    """Return the findings of `pattern` that reach its threshold, in order. If several shapes match the same span, only
    the finding with the best score is returned."""
    best: dict[tuple[int, int], MatchSpan] = {}
    for compiled in _compiled(pattern):
        for span in spans(compiled, text):
            previous = best.get(span[:2])
            if span.score >= pattern.threshold and (previous is None or previous.score < span.score):
                best[span[:2]] = span
    return sorted(best.values())
