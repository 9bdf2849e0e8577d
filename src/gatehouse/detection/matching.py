"""What it means that one pattern is found in a text. The definition, kept small: the fast matcher finds the same.

For each match of a shape, in order:

1. The finding is the group `value` where the regex has one, else the whole match. An empty one is none.
2. The validator sees it. False: none. True: the score is `VALID_SCORE`. None: it is the shape's.
3. A context word of the pattern within `CONTEXT_BEFORE` code points before or `CONTEXT_AFTER` behind the finding adds
   `CONTEXT_BONUS`, up to 1.0. A shape that needs context and has none is not found.
4. What stands right before the finding, within `CONTEXT_BEFORE` code points, must not match the shape's `not_behind`.
5. The next match begins behind this one, so that findings of a shape do not overlap. Where 2, 3 or 4 refused this one,
   it begins behind its first character: a number that fails its check digit does not hide the one that begins within
   it. This holds for shapes of at most `NEAR` code points; longer ones would be looked at again and again.

A shape that splits at underscores sees each `_` as `UNDERSCORE`, a control character that is not part of a word.

A context word stands by itself: no ASCII letter touches it, but for a plural `s`; so `ssn` counts in `user_ssn:` and
`SSNs`, and not in `lessn`. It is near where all of it is, but for that `s`. Thresholds are the rule's business, not
decided here but by `find`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.pattern import (
    CONTEXT_AFTER,
    CONTEXT_BEFORE,
    CONTEXT_BONUS,
    NEAR,
    VALID_SCORE,
    Pattern,
    Shape,
    Validator,
)

#: A compiled `re2` object: the package has no types.
Regex: TypeAlias = Any

#: RE2 asks for memory for its automaton up to this many bytes; beyond it compiling fails.
MAX_MEMORY: Final = 8 << 20
_CHUNK: Final = 6_000
#: What a `_` is read as where it separates words; a file separator is as good as never in a text.
UNDERSCORE: Final = "\x1c"
#: For `bytes.translate`.
UNDERSCORES: Final = bytes.maketrans(b"_", UNDERSCORE.encode())
_LATIN: Final = re.compile(r"[a-z0-9](?:.*[a-z0-9])?\Z", re.DOTALL)
_BESIDE_UNDERSCORE: Final = re.compile(r"\\[wW]|\\.|\[\^?|\]|_", re.DOTALL)


class Span(NamedTuple):
    """Code points of the text that was searched."""

    start: int
    end: int
    score: float


class CompiledShape(NamedTuple):
    regex: Regex
    #: number of the group that is the finding, 0 for the whole match
    group: int
    score: float
    validator: Validator | None
    needs_context: bool
    splits_at_underscore: bool
    #: a match that is refused hides none that begins within it
    tries_again: bool
    #: matches where a context word stands; None where the pattern has no context words
    context: Regex | None
    #: matches the end of what stands before no finding
    not_behind: Regex | None
    #: matches the end of what stands before each finding
    behind: Regex | None


def options(*, ignore_case: bool = False) -> Any:
    """RE2's options for every pattern: `^` and `$` only with `(?m)`, errors come back and are not logged."""
    chosen = re2.Options()
    chosen.case_sensitive = not ignore_case
    chosen.log_errors = False
    chosen.max_mem = MAX_MEMORY
    return chosen


def chunks(words: Iterable[str]) -> Iterator[list[str]]:
    """The words in lists of so many characters that the automaton of each has a lot of room left."""
    chunk: list[str] = []
    size = 0
    for word in words:
        if chunk and size + len(word) > _CHUNK:
            yield chunk
            chunk, size = [], 0
        chunk.append(word)
        size += len(word)
    if chunk:
        yield chunk


def standing_alone(words: Iterable[str]) -> str:
    """A regex for any of `words`, with the characters on either side of it: no letter, and no digit where the word has
    ASCII letters at its ends. With one it is part of a code: `3dea`, `EGK79060`."""
    written = list(words)
    latin = [re2.escape(word) for word in written if _LATIN.match(word)]
    other = [re2.escape(word) for word in written if not _LATIN.match(word)]
    return "|".join(
        f"(?:^|[^{beside}])({'|'.join(some)})s?(?:[^{beside}]|$)"
        for some, beside in ((latin, "a-z0-9"), (other, "a-z"))
        if some
    )


def may_stand_behind(character: str, word: str) -> bool:
    """Whether `character` ends `word`, as `standing_alone` says."""
    if not character.isascii() or not character.isalnum():
        return True
    return character.isdigit() and _LATIN.match(word) is None


def compile_context(words: tuple[str, ...]) -> Regex | None:
    if not words:
        return None
    # Of several that begin at the same place the shortest is the nearest.
    return re2.compile(standing_alone(sorted(words, key=len)), options(ignore_case=True))


def compile_shape(shape: Shape, context: Regex | None = None) -> CompiledShape:
    """Raises `re2.error` with RE2's own reason for a regex that is none."""
    regex = re2.compile(searched(shape), options(ignore_case=shape.ignore_case))
    return CompiledShape(
        regex,
        regex.groupindex.get("value", 0),
        shape.score,
        shape.validator,
        shape.needs_context,
        shape.splits_at_underscore,
        shape.max_length <= NEAR,
        context,
        _at_end(shape.not_behind),
        _at_end(shape.behind),
    )


def _at_end(regex: str | None) -> Regex | None:
    return None if regex is None else re2.compile(f"(?:{regex})$", options(ignore_case=True))


def searched(shape: Shape) -> str:
    """The regex that is searched for."""
    return split_at_underscores(shape.regex) if shape.splits_at_underscore else shape.regex


def split_at_underscores(regex: str) -> str:
    """`regex` for texts in which each `_` is an `UNDERSCORE`."""
    inside = False

    def written(token: re.Match[str]) -> str:
        nonlocal inside
        if token[0] == "_":
            return UNDERSCORE
        if token[0] == r"\w":
            return f"0-9A-Za-z{UNDERSCORE}" if inside else f"[0-9A-Za-z{UNDERSCORE}]"
        if token[0] == r"\W":
            if inside:
                raise ValueError(rf"\W in a class, where _ separates words: {regex}")
            return f"[^0-9A-Za-z{UNDERSCORE}]"
        if token[0][0] == "[" and not inside:
            inside = True
        elif token[0] == "]":
            inside = False
        return token[0]

    return _BESIDE_UNDERSCORE.sub(written, regex)


def compile_pattern(pattern: Pattern) -> tuple[CompiledShape, ...]:
    context = compile_context(pattern.context)
    return tuple(compile_shape(shape, context) for shape in pattern.shapes)


#: The definition asks for the same patterns again and again.
_compiled = lru_cache(maxsize=256)(compile_pattern)


def in_context(compiled: CompiledShape, text: str, start: int, end: int) -> bool:
    """Whether one of the context words is near the finding `text[start:end]`."""
    found = compiled.context.search(text) if compiled.context is not None else None
    while found is not None:
        first, behind = found.span(found.lastindex)
        if (start - CONTEXT_BEFORE <= first and behind <= start) or (end <= first and behind <= end + CONTEXT_AFTER):
            return True
        found = found.re.search(text, found.start() + 1)
    return False


def allowed_before(compiled: CompiledShape, text: str, start: int) -> bool:
    """Whether a finding may begin at `start` for what stands before it."""
    if compiled.not_behind is None and compiled.behind is None:
        return True
    # What is decoded may have bytes of no character.
    before = text[max(0, start - CONTEXT_BEFORE) : start].encode("utf-8", "replace")
    if compiled.not_behind is not None and compiled.not_behind.search(before):
        return False
    return compiled.behind is None or bool(compiled.behind.search(before))


def judge(compiled: CompiledShape, value: str, *, near: bool) -> float | None:
    """The score of `value`, or None: it is none. `near`: a context word is."""
    if compiled.needs_context and not near:
        return None
    verdict = None if compiled.validator is None else compiled.validator(value)
    if verdict is False:
        return None
    if verdict:
        return VALID_SCORE
    return min(1.0, compiled.score + CONTEXT_BONUS) if near else compiled.score


def spans(compiled: CompiledShape, text: str) -> Iterator[Span]:
    seen = text.replace("_", UNDERSCORE) if compiled.splits_at_underscore else text
    match = compiled.regex.search(seen)
    while match is not None:
        start, end = match.span(compiled.group)
        place = max(match.end(), match.start() + 1)
        if start < end:
            score = judge(compiled, text[start:end], near=in_context(compiled, text, start, end))
            if score is not None and allowed_before(compiled, text, start):
                yield Span(start, end, score)
            elif compiled.tries_again:
                place = match.start() + 1
        match = compiled.regex.search(seen, place) if place < len(text) else None


def find(pattern: Pattern, text: str) -> list[Span]:
    """Where `pattern` is found at its own threshold, in order; of equal spans of several shapes the best one."""
    best: dict[tuple[int, int], Span] = {}
    for compiled in _compiled(pattern):
        for span in spans(compiled, text):
            known = best.get(span[:2])
            if span.score >= pattern.threshold and (known is None or known.score < span.score):
                best[span[:2]] = span
    return sorted(best.values())
