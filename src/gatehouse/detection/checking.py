"""Whether a regex can be an organization's own pattern: RE2 takes it, it is small, it finds something, it is fast.

One match of RE2's takes time in proportion to the text, whatever the pattern. What is left to guard against: automata
that outgrow their memory and are then simulated step by step, and matches that each look at all of the text behind
them, as `a(?:.*b)?` does. Both are measured on texts made from the pattern, against a trivial pattern at the same time,
so that a busy machine refuses nothing.
"""

import random
import re
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final, NamedTuple

import re2

from gatehouse.detection import matching
from gatehouse.detection.matcher import BadPattern, Matcher
from gatehouse.detection.pattern import custom_pattern

#: For the compiled program: some 10,000 instructions, made in milliseconds. `[a-z]{1,1000}` takes 2,000 of them.
_PROGRAM_BYTES: Final = 256 << 10
#: A probe is as long as a slice of a long text.
_PROBE: Final = 8192
_STEPS: Final = 64
#: Times the cost of a trivial match, for each byte that the search moves on.
_SLOWEST: Final = 4.0
_ATTEMPTS: Final = 3
#: Seconds for each byte; nothing needs a second look below.
_SURELY_FAST: Final = 1e-6
#: Without any of these nothing repeats, and nothing is slow.
_REPEATS: Final = frozenset("*+?{")
_ANYWHERE: Final = re2._re2.RE2.Anchor.UNANCHORED


class PatternFault(NamedTuple):
    """Why a regex is refused. `position` counts its code points from 0; None where all of it is meant."""

    reason: str
    position: int | None = None

    def __str__(self) -> str:
        return self.reason if self.position is None else f"{self.reason} (position {self.position})"


def check_pattern(regex: str) -> PatternFault | None:
    """None: it may be used. Takes some milliseconds, a second at worst, and blocks: call it in a thread."""
    try:
        compiled = re2.compile(regex, _options())
        Matcher([custom_pattern("probe", "probe", "probe", regex, (), "log_only", 0.5)])
    except re2.error as error:
        reason = _spoken(error)
        return PatternFault(reason, _position(regex, reason))
    except BadPattern as error:
        return PatternFault(str(error))
    if compiled.search("") is not None:
        return PatternFault("it matches the empty text, so it would be found everywhere")
    regexp = re2.compile(regex, matching.options())._regexp
    if not _REPEATS.isdisjoint(regex) and any(_slow(regexp, probe) for probe in _probes(regex, regexp)):
        return PatternFault("it is too slow on hostile texts; bound what it repeats: {1,100} in the place of * or +")
    return None


def _options() -> Any:
    options = matching.options()
    options.max_mem = _PROGRAM_BYTES
    return options


def _spoken(error: re2.error) -> str:
    """RE2's own words: its errors hold bytes."""
    said = error.args[0]
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _position(regex: str, reason: str) -> int | None:
    """RE2 names the part that it stumbled over, not its place. It is the first where the regex, cut behind it, has the
    same fault."""
    kind, _, part = reason.partition(": ")
    if kind == "missing )":
        return len(regex)
    if kind == "unexpected )":
        part = ")"
    elif kind.startswith("trailing"):
        return len(regex) - 1
    first = place = regex.find(part) if part else -1
    while place >= 0:
        try:
            re2.compile(regex[: place + len(part)], _options())
        except re2.error as error:
            if _spoken(error).partition(": ")[0] == kind:
                return place
        place = regex.find(part, place + 1)
    return first if first >= 0 else None


def _probes(regex: str, regexp: Any) -> Iterator[bytes]:
    """Texts on which such a regex could be slow: what it is made of, again and again."""
    characters = dict.fromkeys([*filter(str.isalnum, regex)][:8])
    words = re.findall(r"\w{2,}", regex)[:4]
    known, least, _ = regexp.PossibleMatchRange(64)
    if known and (shortest := least.decode(errors="ignore")):
        words.append(shortest)
    alphabet = [*characters, *"aZ09é -.@"]
    for unit in dict.fromkeys([*words, *alphabet]):
        yield (unit * (_PROBE // len(unit) + 1))[:_PROBE].encode()
    # The same texts every time: what was taken once is taken again.
    yield "".join(random.Random(regex).choices(alphabet, k=_PROBE)).encode()  # noqa: S311


def _slow(regexp: Any, probe: bytes) -> bool:
    cost = _cost(regexp, probe)
    if cost < _SURELY_FAST:
        return False
    trivial = _cost(_TRIVIAL, _TRIVIAL_PROBE)
    # The least of several: who is interrupted in the middle measures something else.
    for _ in range(_ATTEMPTS):
        cost, trivial = min(cost, _cost(regexp, probe)), min(trivial, _cost(_TRIVIAL, _TRIVIAL_PROBE))
    return cost > _SLOWEST * trivial


def _cost(regexp: Any, probe: bytes) -> float:
    """Seconds for each byte that the first matches move on."""
    place, end = 0, len(probe)
    started = perf_counter()
    for _ in range(_STEPS):
        match = regexp.Match(_ANYWHERE, probe, place, end)[0]
        place = end if match[0] < 0 else max(match[1], place + 1)
        if place >= end:
            break
    return (perf_counter() - started) / place


_TRIVIAL: Final = re2.compile("a")._regexp
_TRIVIAL_PROBE: Final = b"a" * _PROBE
