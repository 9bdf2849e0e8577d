"""An organization's own regex: what is taken, what is refused and why, and what it becomes.

In a whole text it finds what RE2's search for it finds, in order and without overlaps, but for matches that are empty.
A stream waits for the end of a match as long as it can still grow, up to `STREAM_MAX_LENGTH`: see `walks`.

Nothing here is measured by the clock, so that what is taken once is always taken. RE2 stops compiling at `_MEMORY`
bytes, after some ten milliseconds.
"""

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection import matching, re2_syntax
from gatehouse.detection.pattern import (
    CONTEXT_BONUS,
    NEAR,
    STREAM_MAX_LENGTH,
    ActionTier,
    Pattern,
    Shape,
)
from gatehouse.detection.rules import spoken

#: Characters of a regex.
MAX_REGEX: Final = 2000
#: RE2's instructions for a regex; each may be looked at for each character of a text.
MAX_PROGRAM: Final = 8_000
_MEMORY: Final = 512 << 10
#: At so many places of a regex a fault is looked for.
_PLACES: Final = 16
#: Characters of a match that is seen through escapes, line breaks and encodings, where the regex sets no bound: a
#: stream holds back as much.
_SEEN_THROUGH: Final = 128

#: What RE2 says is explained where people stumble.
_EXPLAINED: Final = {
    "(?=": "look-ahead is not possible",
    "(?!": "look-ahead is not possible",
    "(?<=": "look-behind is not possible",
    "(?<!": "look-behind is not possible",
    "(?>": "atomic groups are not possible, nor needed: matching never tracks back",
}


class Problem(NamedTuple):
    """Why a regex is not taken, and at which of its characters, from 0, where that can be told."""

    reason: str
    position: int | None = None

    def __str__(self) -> str:
        return self.reason if self.position is None else f"{self.reason} (position {self.position})"


_REPEATED: Final = "a repetition is too long: up to 1000 times, those within each other multiplied"
_TOO_LARGE: Final = Problem("the pattern is too large: bound its repetitions more tightly, or write + for a class")


class Refused(ValueError):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def check_pattern(regex: str) -> Problem | None:
    """None: the regex is taken."""
    try:
        custom_shape(regex, score=1.0)
    except Refused as refused:
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
    """What matches counts in full, or with context words only beside one of them. Raises `Refused`."""
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


# Policies are compiled again whenever something of theirs changed: mostly not their patterns.
@lru_cache(maxsize=4096)
def custom_shape(regex: str, *, score: float) -> Shape:
    """What a regex becomes. Raises `Refused`."""
    if not regex:
        raise Refused(Problem("the pattern is empty"))
    if len(regex) > MAX_REGEX:
        raise Refused(Problem(f"the pattern has {len(regex)} characters; at most {MAX_REGEX} are taken", MAX_REGEX))
    if _compiled(regex, regex).programsize > MAX_PROGRAM:
        raise Refused(_TOO_LARGE)
    try:
        read = re2_syntax.tokens(regex)
    except re2_syntax.AnyByte as found:
        raise Refused(Problem(r"\C is not possible: a pattern matches characters, not bytes", found.position)) from None
    longest = re2_syntax.widths(read).longest
    if longest == 0:
        raise Refused(Problem("the pattern matches nothing but the empty text"))
    try:
        re2.compile(re2_syntax.unfinished(read), matching.options())
    except re2.error:
        # It is as large as three of the pattern.
        raise Refused(_TOO_LARGE) from None
    return Shape(
        regex=regex,
        score=score,
        max_length=int(longest) if longest <= NEAR else _SEEN_THROUGH,
        as_written=True,
    )


# Not compiled: a list of rules asks for many at once.
@lru_cache(maxsize=4096)
def stream_max_length(regex: str) -> int | None:
    """Characters that a stream looks at of a match; None where no match is longer. `regex` is one that is taken."""
    return None if re2_syntax.widths(re2_syntax.tokens(regex)).longest <= STREAM_MAX_LENGTH else STREAM_MAX_LENGTH


def _compiled(regex: str, written: str) -> Any:
    try:
        return re2.compile(regex, _options())
    except re2.error as error:
        raise Refused(_explained(spoken(error), written)) from None


def _options() -> Any:
    options = matching.options()
    options.max_mem = _MEMORY
    return options


def _explained(said: str, regex: str) -> Problem:
    """RE2 ends its words with the part of the regex that they are about."""
    kind, _, part = said.partition(": ")
    if kind.startswith("pattern too large"):
        return _TOO_LARGE
    position = _position(regex, kind, part)
    if kind == "invalid repetition size":
        return Problem(_REPEATED, position)
    if re.fullmatch(r"\\[1-9]", part):
        return Problem("references to groups are not possible", position)
    for opening, explained in _EXPLAINED.items():
        if part.startswith(opening):
            return Problem(explained, position)
    return Problem(kind, position)


def _position(regex: str, kind: str, part: str) -> int | None:
    """RE2 names the part that it stumbled over, not its place: the first where the regex, cut behind it, has the same
    fault."""
    if kind == "missing )":
        return len(regex)
    if kind == "unexpected )":
        part = ")"
    place = first = regex.find(part) if part else -1
    for _ in range(_PLACES):
        if place < 0:
            break
        try:
            re2.compile(regex[: place + len(part)], _options())
        except re2.error as error:
            if spoken(error).partition(": ")[0] == kind:
                return place
        place = regex.find(part, place + 1)
    return first if first >= 0 else None
