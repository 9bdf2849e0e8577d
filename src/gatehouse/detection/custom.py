"""An organization's own regex: what is taken, what is refused and why, and what it becomes.

A stream holds back as much text as a match can be long, so every match has an end: `*`, `+` and `{n,}` repeat at most
`MOST_REPEATS` times more than they must. That also keeps the search linear: RE2 never tracks back, but a regex whose
matches look ahead without bound is searched for in quadratic time. `^` and `$` are the ends of a line.
"""

import re
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection import matching
from gatehouse.detection.pattern import MAX_CUSTOM_LENGTH, Shape
from gatehouse.detection.rules import spoken

#: Characters of a regex.
MAX_REGEX: Final = 1000
MOST_REPEATS: Final = 100
#: RE2's instructions for a regex; each may be looked at for each character of a text.
MAX_PROGRAM: Final = 20_000

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
_OPEN_REPEAT: Final = re.compile(r"\{(\d+),\}")


class Problem(NamedTuple):
    """Why a regex is not taken, and at which of its characters, where that can be told."""

    reason: str
    position: int | None = None

    def __str__(self) -> str:
        return self.reason if self.position is None else f"{self.reason} (at character {self.position + 1})"


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


def custom_shape(regex: str, *, score: float) -> Shape:
    """What a regex becomes. Raises `Refused`."""
    if not regex:
        raise Refused(Problem("the pattern is empty"))
    if len(regex) > MAX_REGEX:
        raise Refused(Problem(f"the pattern has {len(regex)} characters; at most {MAX_REGEX} are taken", MAX_REGEX))
    _compiled(regex, regex)
    flags, body = _flags(regex)
    bounded = f"(?m{flags}){_bounded(body)}"
    program = _compiled(bounded, regex)
    if program.programsize > MAX_PROGRAM:
        raise Refused(Problem("the pattern is too large: bound its repetitions more tightly"))
    tree = _tree(_bounded(body))
    shortest, longest = map(int, tree.getwidth())
    if shortest == 0 or program.search("") is not None:
        raise Refused(Problem("the pattern matches the empty text, so it would match everywhere"))
    if longest > MAX_CUSTOM_LENGTH:
        raise Refused(
            Problem(f"a match can have {longest} characters, more than {MAX_CUSTOM_LENGTH}: bound its repetitions")
        )
    if not _line_ends(tree):
        bounded = f"(?{flags}){_bounded(body)}" if flags else _bounded(body)
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
        return re2.compile(regex, matching.options())
    except re2.error as error:
        raise Refused(_explained(spoken(error), written)) from None


def _explained(said: str, regex: str) -> Problem:
    """RE2 ends its words with the part of the regex that they are about."""
    reason, _, part = said.partition(": ")
    if reason == "invalid repetition size":
        reason = "a repetition is too long, or several within each other are: bound the inner ones, as in {1,9}"
    position = regex.find(part) if part else -1
    for opening, explained in _EXPLAINED.items():
        if part.startswith(opening):
            reason = explained
            position = regex.find(opening)
    if re.fullmatch(r"\\[1-9]", part):
        reason = "references to groups are not possible"
    return Problem(reason, position if position >= 0 else None)


def _bounded(regex: str) -> str:
    """The regex with bounds where it has none."""
    pieces: list[str] = []
    place = 0
    while place < len(regex):
        character = regex[place]
        if character == "\\":
            if regex.startswith(r"\Q", place):
                raise Refused(Problem(r"\Q...\E is not taken: put a \ before each special character", place))
            token = _CLASSES.match(regex, place)
            end = token.end() if token else place + 2
            pieces.append(regex[place:end])
        elif character == "[":
            end = _class_end(regex, place)
            pieces.append(regex[place:end])
        elif character in "*+":
            pieces.append(f"{{{int(character == '+')},{MOST_REPEATS}}}")
            end = place + 1
        elif found := _OPEN_REPEAT.match(regex, place):
            least = int(found[1])
            pieces.append(f"{{{least},{least + MOST_REPEATS}}}")
            end = found.end()
        else:
            pieces.append(character)
            end = place + 1
        place = end
    return "".join(pieces)


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
        tree = _parser.parse(_plain(body))
    except (_parser.error, OverflowError) as error:
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
