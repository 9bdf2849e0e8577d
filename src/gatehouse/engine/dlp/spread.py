"""Values that are spread over neighbouring texts: `4111 1111`, and in the next message `1111 1111`.

Only the ends of texts that follow each other are looked at, joined, and only where they look like pieces of a value.
What is found counts where it goes over a seam, proves itself, and is not found in one of the texts alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.engine.conversation.following import Place
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.chains import (
    MIN_NUMBER_DIGITS,
    TEXTS_PER_STEP,
    WINDOW_CHARACTERS,
    JoinedEnds,
    Piece,
    build_chains,
    join_ends,
    may_be_split,
)
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.steps import Steps, finish

#: A finding with this score has a form of its own, or check digits that prove it.
_STRONG: Final = 0.9
_BUILT_IN: Final = frozenset(pattern.id for pattern in BUILT_IN)
_SECRETS: Final = frozenset(pattern.id for pattern in BUILT_IN if pattern.category == "secret")
#: Letters and digits of a number whose check digits prove it: the one letter or digit of a shorter one does not.
_SHORTEST_IDENTIFIER: Final = 11
#: Its groups and its check digit are enough.
_CARD: Final = "credit-card"
#: Nothing proves it but its form.
_EMAIL: Final = "email"


class JoinedValue(NamedTuple):
    """`finding` says what it is: its place is one among joined ends. `text` is what the pieces are together."""

    finding: Finding
    pieces: Sequence[Piece]
    text: str


async def find_split_values(
    texts: Sequence[Slot],
    sequences: Iterable[Sequence[Place]],
    known: Iterable[tuple[int, Finding]],
    size: int,
    examiner: Examiner,
) -> list[JoinedValue]:
    """The values that go from one text over into those that follow it, as `sequences` say. `known` are findings within
    texts, with the numbers of those; `size` is that of all texts."""
    if len(texts) <= TEXTS_PER_STEP:
        is_likely = len(texts) > 1 and finish(may_be_split(texts))
    else:
        is_likely = await examiner.run_steps(size, may_be_split(texts), fallback=False)
    if not is_likely:
        return []
    found = await examiner.run_steps(size, build_chains(texts, sequences), fallback=[])
    if not found:
        return []
    ends = await examiner.run_steps(size, join_ends(found), fallback=None)
    if ends is None:
        return []
    findings = await examiner.find_patterns(ends.text, parts=ends.as_they_stand, decoded=False)
    return await examiner.run_steps(size, _values(ends, findings, known, texts), fallback=[]) if findings else []


def _values(
    ends: JoinedEnds, findings: Iterable[Finding], known: Iterable[tuple[int, Finding]], texts: Sequence[Slot]
) -> Steps[list[JoinedValue]]:
    """What goes over a seam, proves itself and is not found in one text."""
    over: list[JoinedValue] = []
    for finding in findings:
        yield
        pieces = ends.pieces(finding.start, finding.end)
        text = ends.text[finding.start : finding.end]
        if len(pieces) > 1 and _proves(finding, text, pieces, is_direct=finding.end <= ends.direct):
            over.append(JoinedValue(finding, pieces, text))
    if not over:
        return over
    within: dict[int, list[Finding]] = {}
    for number, finding in known:
        yield
        # Others touch no piece.
        if finding.start < WINDOW_CHARACTERS or finding.end > len(texts[number].text) - WINDOW_CHARACTERS:
            within.setdefault(number, []).append(finding)
    values: list[JoinedValue] = []
    taken: set[tuple[str, Piece]] = set()
    for value in over:
        yield
        named = [(value.finding.source, piece) for piece in value.pieces]
        if taken.isdisjoint(named) and not _is_known(value, within):
            taken.update(named)
            values.append(value)
    return values


def _proves(finding: Finding, text: str, pieces: Sequence[Piece], *, is_direct: bool) -> bool:
    if finding.source not in _BUILT_IN:
        # An organization's own pattern may match anything: two numbers that follow each other are none of its values.
        return is_direct and _is_token(text)
    if finding.source == _EMAIL:
        # Code begins with a decorator, and a sentence with a capital.
        _, first, behind = pieces[0]
        _, last, end = pieces[-1]
        return "@" in text[: behind - first] and not text[last - end].isupper()
    if finding.source not in _SECRETS and sum(map(str.isalnum, text)) < _SHORTEST_IDENTIFIER:
        return False
    return finding.score >= _STRONG or finding.source == _CARD


def _is_known(value: JoinedValue, within: Mapping[int, Sequence[Finding]]) -> bool:
    """Whether a piece is, or is in, a value of its own."""
    finding, first = value.finding, value.pieces[0]
    known = [(each, piece) for piece in value.pieces for each in within.get(piece[0], ()) if _touches(each, piece)]
    of_source = [(each, piece) for each, piece in known if each.source == finding.source]
    if not of_source:
        return any(each.score > finding.score and _holds(each, piece) for each, piece in known)
    # The beginning of a token may be one by itself: what follows is its rest where it looks like one.
    begins, piece = of_source[0]
    rest = value.text[begins.end - first[1] :]
    return (
        len(of_source) > 1
        or piece != first
        or begins.start != first[1]
        or finding.source not in _SECRETS
        or not _is_token(rest)
        or any(piece != first for _, piece in known)
    )


def _touches(finding: Finding, piece: Piece) -> bool:
    return finding.source in _BUILT_IN and finding.start < piece[2] and piece[1] < finding.end


def _holds(finding: Finding, piece: Piece) -> bool:
    return finding.start <= piece[1] and piece[2] <= finding.end


def _is_token(text: str) -> bool:
    """Whether it has letters and digits, and is longer than a word that has both."""
    return len(text) >= MIN_NUMBER_DIGITS and any(map(str.isdigit, text)) and any(map(str.isalpha, text))
