"""An organization's own regex: what is taken, what is refused and why, and what it becomes.

A stream holds back as much text as a match can be long, so every match has an end: `*`, `+` and `{n,}` repeat at most
`MOST_REPEATS` times more than they must. That also keeps the search linear: RE2 never tracks back, but a regex whose
matches look ahead without bound is searched for in quadratic time. A class of Unicode's (`\\p{L}+`) is too large to be
written down so many times: there the matcher sees to it that no match is longer. `^` and `$` are the ends of a line.

Nothing here is measured by the clock, so that what is taken once is always taken. RE2 stops compiling at `_MEMORY`
bytes, after some ten milliseconds.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection import matching
from gatehouse.detection.pattern import CONTEXT_BONUS, MAX_CUSTOM_LENGTH, ActionTier, Pattern, Shape
from gatehouse.detection.regex_trees import parser
from gatehouse.detection.rules import spoken

#: Characters of a regex.
MAX_REGEX: Final = 2000
MOST_REPEATS: Final = 100
#: RE2's instructions for a regex; each may be looked at for each character of a text.
MAX_PROGRAM: Final = 8_000
_MEMORY: Final = 512 << 10
#: At so many places of a regex a fault is looked for.
_PLACES: Final = 16

#: What RE2 says is explained where people stumble.
_EXPLAINED: Final = {
    "(?=": "look-ahead is not possible",
    "(?!": "look-ahead is not possible",
    "(?<=": "look-behind is not possible",
    "(?<!": "look-behind is not possible",
    "(?>": "atomic groups are not possible, nor needed: matching never tracks back",
}
_FLAGS: Final = re.compile(r"\(\?[imsU-]+\)")
#: Escapes that RE2 takes and Python does not; each stands for one character.
_CLASSES: Final = re.compile(r"\\(?:[pP](?:\{\^?\w+\}|\w)|x\{[0-9a-fA-F]+\})")
_LARGE: Final = re.compile(r"\\[pP]")
_OPEN_REPEAT: Final = re.compile(r"\{(\d+),\}")


class Problem(NamedTuple):
    """Why a regex is not taken, and at which of its characters, from 0, where that can be told."""

    reason: str
    position: int | None = None

    def __str__(self) -> str:
        return self.reason if self.position is None else f"{self.reason} (position {self.position})"


_REPEATED: Final = "a repetition is too long, or several within each other are: bound the inner ones, as in {1,9}"
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
    _compiled(regex, regex)
    flags, body = _flags(regex)
    written = "".join(_pieces(body, all_bounded=False))
    bounded = f"(?m{flags}){written}"
    program = _compiled(bounded, regex)
    if program.programsize > MAX_PROGRAM:
        raise Refused(_TOO_LARGE)
    tree = _tree("".join(_pieces(body, all_bounded=True)))
    shortest, longest = map(int, tree.getwidth())
    if shortest == 0 or program.search("") is not None:
        raise Refused(Problem("the pattern matches the empty text, so it would match everywhere"))
    if longest > MAX_CUSTOM_LENGTH:
        raise Refused(
            Problem(f"a match can have {longest} characters, more than {MAX_CUSTOM_LENGTH}: bound its repetitions")
        )
    if not _line_ends(tree):
        bounded = f"(?{flags}){written}" if flags else written
    return Shape(regex=bounded, score=score, max_length=longest)


def _flags(regex: str) -> tuple[str, str]:
    """The flags that stand first, and the rest."""
    first = _FLAGS.match(regex)
    start = first.end() if first else 0
    if later := _FLAGS.search(regex, start):
        raise Refused(Problem("flags stand at the very beginning, or in a group as (?i:...)", later.start()))
    return (first[0][2:-1] if first else ""), regex[start:]


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


def _pieces(regex: str, *, all_bounded: bool) -> Iterator[str]:
    """The regex with bounds where it has none, in pieces. Not `all_bounded`: those of Unicode's classes have none."""
    place = 0
    token = ""
    while place < len(regex):
        character = regex[place]
        bounds: tuple[int, int] | None = None
        if character == "\\":
            if regex.startswith(r"\Q", place):
                raise Refused(Problem(r"\Q...\E is not taken: put a \ before each special character", place))
            known = _CLASSES.match(regex, place)
            end = known.end() if known else place + 2
        elif character == "[":
            end = _class_end(regex, place)
        elif character in "*+":
            least = int(character == "+")
            bounds, end = (least, MOST_REPEATS), place + 1
        elif found := _OPEN_REPEAT.match(regex, place):
            least = int(found[1])
            bounds, end = (least, least + MOST_REPEATS), found.end()
        else:
            end = place + 1
        if bounds is None or (not all_bounded and _LARGE.search(token)):
            yield regex[place:end]
        else:
            yield f"{{{bounds[0]},{bounds[1]}}}"
        token = regex[place:end]
        place = end


def _class_end(regex: str, start: int) -> int:
    place = start + 1
    if regex.startswith("^", place):
        place += 1
    if regex.startswith("]", place):
        place += 1
    while regex[place] != "]":
        if regex[place] == "\\":
            place += 2
        elif regex.startswith("[:", place):
            place = regex.index(":]", place) + 2
        else:
            place += 1
    return place + 1


def _tree(body: str) -> Any:
    """RE2 does not tell how long a match can be, so the regex is read as Python's."""
    try:
        tree = parser.parse(_plain(body))
    except (parser.error, OverflowError) as error:
        raise Refused(Problem(f"not taken here: {error}")) from None
    if _has(tree, "STRING"):
        raise Refused(Problem(r"\A and \z are not taken: a text may come in pieces"))
    return tree


def _line_ends(tree: Any) -> bool:
    return _has(tree, "AT_BEGINNING") or _has(tree, "AT_END")


def _plain(regex: str) -> str:
    """With one character for each class that only RE2 knows."""
    pieces: list[str] = []
    place = 0
    while place < len(regex):
        if regex[place] == "\\":
            token = _CLASSES.match(regex, place)
            pieces.append("x" if token else regex[place : place + 2].replace(r"\z", r"\Z"))
            place = token.end() if token else place + 2
        elif regex[place] == "[":
            pieces.append("x")
            place = _class_end(regex, place)
        elif regex.startswith("(?<", place):
            pieces.append("(?P<")
            place += 3
        elif regex.startswith("{,", place):
            # To RE2 these are two characters, to Python the beginning of a repetition.
            pieces.append(r"\{,")
            place += 2
        else:
            pieces.append(regex[place])
            place += 1
    return "".join(pieces)


def _has(nodes: Any, anchor: str) -> bool:
    """Whether an anchor with `anchor` in its name is anywhere in the regex."""
    for code, argument in nodes:
        name = str(code)
        if name == "AT" and anchor in str(argument):
            return True
        if name == "BRANCH":
            parts = argument[1]
        elif name in {"SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT"}:
            parts = [argument[-1]]
        else:
            continue
        if any(_has(part, anchor) for part in parts):
            return True
    return False
