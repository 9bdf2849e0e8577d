"""What it means that one pattern is found in a text. The definition, kept small: the fast matcher finds the same.

For each match of a shape, in order and without overlaps of the shape with itself:

1. The finding is the group `value` where the regex has one, else the whole match. An empty one is none.
2. The validator sees it. False: none. True: the score is `VALID_SCORE`. None: it is the shape's.
3. A context word of the pattern within `CONTEXT_BEFORE` code points before or `CONTEXT_AFTER` behind the finding adds
   `CONTEXT_BONUS`, up to 1.0. A shape that needs context and has none is not found.

A context word stands by itself: no ASCII letter touches it, but for a plural `s`; so `ssn` counts in `user_ssn:` and
`SSNs`, and not in `lessn`. It is near where all of it is, but for that `s`. Thresholds are the rule's business, not
decided here but by `find`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import re2

from gatehouse.detection.pattern import (
    CONTEXT_AFTER,
    CONTEXT_BEFORE,
    CONTEXT_BONUS,
    VALID_SCORE,
    Pattern,
    Shape,
    Validator,
)

#: A compiled `re2` object: the package has no types.
Regex: TypeAlias = Any

#: RE2 asks for memory for its automaton up to this many bytes; beyond it compiling fails.
MAX_MEMORY: Final = 8 << 20
_CHUNK: Final = 4_000


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
    #: matches where a context word stands; None where the pattern has no context words
    context: Regex | None


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
    """A regex for any of `words`, with the characters on either side of it."""
    return "(?:^|[^a-z])(" + "|".join(map(re2.escape, words)) + ")s?(?:[^a-z]|$)"


def compile_context(words: tuple[str, ...]) -> Regex | None:
    if not words:
        return None
    # Of several that begin at the same place the shortest is the nearest.
    return re2.compile(standing_alone(sorted(words, key=len)), options(ignore_case=True))


def compile_shape(shape: Shape, context: Regex | None = None) -> CompiledShape:
    """Raises `re2.error` with RE2's own reason for a regex that is none."""
    regex = re2.compile(shape.regex, options(ignore_case=shape.ignore_case))
    return CompiledShape(
        regex, regex.groupindex.get("value", 0), shape.score, shape.validator, shape.needs_context, context
    )


def compile_pattern(pattern: Pattern) -> tuple[CompiledShape, ...]:
    context = compile_context(pattern.context)
    return tuple(compile_shape(shape, context) for shape in pattern.shapes)


def in_context(compiled: CompiledShape, text: str, start: int, end: int) -> bool:
    """Whether one of the context words is near the finding `text[start:end]`."""
    found = compiled.context.search(text) if compiled.context is not None else None
    while found is not None:
        first, behind = found.span(1)
        if (start - CONTEXT_BEFORE <= first and behind <= start) or (end <= first and behind <= end + CONTEXT_AFTER):
            return True
        found = found.re.search(text, found.start() + 1)
    return False


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
    for match in compiled.regex.finditer(text):
        start, end = match.span(compiled.group)
        if start < end:
            score = judge(compiled, text[start:end], near=in_context(compiled, text, start, end))
            if score is not None:
                yield Span(start, end, score)


def find(pattern: Pattern, text: str) -> list[Span]:
    """Where `pattern` is found at its own threshold, in order; of equal spans of several shapes the best one."""
    best: dict[tuple[int, int], Span] = {}
    for compiled in compile_pattern(pattern):
        for span in spans(compiled, text):
            known = best.get(span[:2])
            if span.score >= pattern.threshold and (known is None or known.score < span.score):
                best[span[:2]] = span
    return sorted(best.values())
