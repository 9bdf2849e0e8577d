"""Validation and compilation of an organization's own regexes.

In a complete text, the matches of such a regex are the nonempty matches that RE2's search returns, in order and without
overlaps. A stream is held back while a match can still grow, up to `STREAM_MAX_CHARACTERS` (see `search.walks`).

No check depends on the clock, so a regex that is accepted once is always accepted. RE2 stops compiling a regex that
needs more than `_MAX_MEMORY_BYTES`, which takes about ten milliseconds.
"""

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection.pattern import (
    CONTEXT_BONUS,
    NEAR_CHARACTERS,
    STREAM_MAX_CHARACTERS,
    ActionTier,
    Pattern,
    Shape,
)
from gatehouse.detection.pattern_set import error_message
from gatehouse.detection.regex import re2_syntax
from gatehouse.detection.search import matching

#: Maximum characters of a regex.
MAX_REGEX_CHARACTERS: Final = 2000
#: Maximum RE2 instructions of a regex. Each of them may be evaluated for each character of a text.
MAX_PROGRAM_INSTRUCTIONS: Final = 8_000
_MAX_MEMORY_BYTES: Final = 512 << 10
#: Maximum number of positions of a regex that are tried to locate an error.
_MAX_CHECKED_POSITIONS: Final = 16
#: Maximum characters of a match across escapes, line breaks and encodings, if the regex has no bound of its own. A
#: stream holds back this number of characters.
_MAX_DISGUISED_CHARACTERS: Final = 128

#: Explanations of the most frequent syntax errors, by the beginning of the faulty part.
_EXPLANATIONS: Final = {
    "(?=": "look-ahead is not possible",
    "(?!": "look-ahead is not possible",
    "(?<=": "look-behind is not possible",
    "(?<!": "look-behind is not possible",
    "(?>": "atomic groups are not possible, nor needed: matching never tracks back",
}


class Problem(NamedTuple):
    """The reason why a regex is refused, and the index of the faulty character, from 0. The index is None if
    unknown."""

    reason: str
    position: int | None = None

    def __str__(self) -> str:
        return self.reason if self.position is None else f"{self.reason} (position {self.position})"


_REPETITION_TOO_LONG: Final = "a repetition is too long: up to 1000 times, those within each other multiplied"
_TOO_LARGE: Final = Problem("the pattern is too large: bound its repetitions more tightly, or write + for a class")


class PatternRefused(ValueError):
    """A regex that is not accepted, with its `problem`."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def check_pattern(regex: str) -> Problem | None:
    """Return the problem of a regex that is refused, or None if the regex is accepted."""
    try:
        custom_shape(regex, score=1.0)
    except PatternRefused as refused:
        return refused.problem
    return None


def custom_pattern(
    id: str,
    name: str,
    entity_type: str,
    regex: str,
    *,
    context: tuple[str, ...] = (),
    action: ActionTier = "redact",
    threshold: float = 0.5,
) -> Pattern:
    """Return a pattern for a regex. A match scores 1.0. If `context` is not empty, only a match near a context word
    scores 1.0. Raises `PatternRefused`."""
    return Pattern(
        id=id,
        name=name,
        entity_type=entity_type,
        category="secret",
        action=action,
        threshold=threshold,
        shapes=(custom_shape(regex, score=1.0 - CONTEXT_BONUS if context else 1.0),),
        context=context,
    )


# Policies are recompiled after every change, mostly with the same patterns.
@lru_cache(maxsize=4096)
def custom_shape(regex: str, *, score: float) -> Shape:
    """Return the compiled shape of a regex. Raises `PatternRefused`."""
    if not regex:
        raise PatternRefused(Problem("the pattern is empty"))
    if len(regex) > MAX_REGEX_CHARACTERS:
        raise PatternRefused(
            Problem(
                f"the pattern has {len(regex)} characters; at most {MAX_REGEX_CHARACTERS} are taken",
                MAX_REGEX_CHARACTERS,
            )
        )
    if _compiled(regex, regex).programsize > MAX_PROGRAM_INSTRUCTIONS:
        raise PatternRefused(_TOO_LARGE)
    try:
        tokens = re2_syntax.tokens(regex)
    except re2_syntax.AnyByte as error:
        raise PatternRefused(
            Problem(r"\C is not possible: a pattern matches characters, not bytes", error.position)
        ) from None
    longest = re2_syntax.widths(tokens).longest
    if longest == 0:
        raise PatternRefused(Problem("the pattern matches nothing but the empty text"))
    try:
        re2.compile(re2_syntax.unfinished(tokens), matching.options())
    except re2.error:
        # The regex for incomplete texts is about three times as large as the pattern.
        raise PatternRefused(_TOO_LARGE) from None
    return Shape(
        regex=regex,
        score=score,
        max_length=int(longest) if longest <= NEAR_CHARACTERS else _MAX_DISGUISED_CHARACTERS,
        as_written=True,
    )


# The regex is not compiled, because a list of rules calls this for many of them.
@lru_cache(maxsize=4096)
def stream_max_length(regex: str) -> int | None:
    """Return the number of characters of a match that a stream examines, or None if no match is longer than that.
    `regex` must have been accepted."""
    return (
        None if re2_syntax.widths(re2_syntax.tokens(regex)).longest <= STREAM_MAX_CHARACTERS else STREAM_MAX_CHARACTERS
    )


def _compiled(regex: str, shown_regex: str) -> Any:
    try:
        return re2.compile(regex, _options())
    except re2.error as error:
        raise PatternRefused(_explained(error_message(error), shown_regex)) from None


def _options() -> Any:
    options = matching.options()
    options.max_mem = _MAX_MEMORY_BYTES
    return options


def _explained(message: str, regex: str) -> Problem:
    """Return the problem that an error message of RE2 describes. The message ends with the faulty part of the regex."""
    kind, _, part = message.partition(": ")
    if kind.startswith("pattern too large"):
        return _TOO_LARGE
    position = _position(regex, kind, part)
    if kind == "invalid repetition size":
        return Problem(_REPETITION_TOO_LONG, position)
    if re.fullmatch(r"\\[1-9]", part):
        return Problem("references to groups are not possible", position)
    for opening, explanation in _EXPLANATIONS.items():
        if part.startswith(opening):
            return Problem(explanation, position)
    return Problem(kind, position)


def _position(regex: str, kind: str, part: str) -> int | None:
    """Return the position of the fault. RE2 reports the faulty part, but not its position. The regex is cut off after
    each occurrence of the part. The result is the first occurrence for which the shortened regex has the same fault."""
    if kind == "missing )":
        return len(regex)
    if kind == "unexpected )":
        part = ")"
    place = first = regex.find(part) if part else -1
    for _ in range(_MAX_CHECKED_POSITIONS):
        if place < 0:
            break
        try:
            re2.compile(regex[: place + len(part)], _options())
        except re2.error as error:
            if error_message(error).partition(": ")[0] == kind:
                return place
        place = regex.find(part, place + 1)
    return first if first >= 0 else None
