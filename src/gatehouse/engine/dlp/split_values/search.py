"""Finds values that are split over consecutive texts, such as `4111 1111` followed by `1111 1111` in the next message.

Only the joined ends of consecutive texts are searched, and only if they resemble pieces of a value. A match counts if
it crosses a seam, is strong enough, and is not a finding of one text alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.engine.conversation.following import Place
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.split_values.chains import (
    MIN_NUMBER_DIGITS,
    TEXTS_PER_STEP,
    WINDOW_CHARACTERS,
    JoinedEnds,
    Piece,
    build_chains,
    join_ends,
    may_be_split,
)
from gatehouse.engine.dlp.steps import Steps, finish

#: Minimum score of findings with an unmistakable form or with valid check digits.
_STRONG_SCORE: Final = 0.9
_BUILT_IN: Final = frozenset(pattern.id for pattern in BUILT_IN)
_SECRETS: Final = frozenset(pattern.id for pattern in BUILT_IN if pattern.category == "secret")
#: Minimum number of letters and digits of an identifier with check digits. The check digits of a shorter identifier
#: prove too little.
_MIN_IDENTIFIER_CHARACTERS: Final = 11
#: A card number needs no minimum score: its groups and its check digit are sufficient evidence.
_CARD: Final = "credit-card"
#: An e-mail address is recognized only by its form.
_EMAIL: Final = "email"


class JoinedValue(NamedTuple):
    """A split value. The position of `finding` is in the joined ends of the texts. `text` is the concatenation of the
    pieces."""

    finding: Finding
    pieces: Sequence[Piece]
    text: str


async def find_split_values(
    texts: Sequence[Slot],
    sequences: Iterable[Sequence[Place]],
    findings_in_texts: Iterable[tuple[int, Finding]],
    size: int,
    examiner: Examiner,
) -> list[JoinedValue]:
    """Return the values that are split over consecutive texts. `sequences` are the sequences of consecutive texts.
    `findings_in_texts` are the findings within single texts, each with the number of its text. `size` is the size of
    all texts."""
    if len(texts) <= TEXTS_PER_STEP:
        is_likely = len(texts) > 1 and finish(may_be_split(texts))
    else:
        is_likely = await examiner.run_steps(size, may_be_split(texts), fallback=False)
    if not is_likely:
        return []
    text_chains = await examiner.run_steps(size, build_chains(texts, sequences), fallback=[])
    if not text_chains:
        return []
    ends = await examiner.run_steps(size, join_ends(text_chains), fallback=None)
    if ends is None:
        return []
    findings = await examiner.find_patterns(ends.text, parts=ends.unchanged_chains, decoded=False)
    return (
        await examiner.run_steps(size, _values(ends, findings, findings_in_texts, texts), fallback=[])
        if findings
        else []
    )


def _values(
    ends: JoinedEnds,
    findings: Iterable[Finding],
    findings_in_texts: Iterable[tuple[int, Finding]],
    texts: Sequence[Slot],
) -> Steps[list[JoinedValue]]:
    """Return the matches that cross a seam, are strong enough, and are not findings of a single text."""
    crossing: list[JoinedValue] = []
    for finding in findings:
        yield
        pieces = ends.pieces(finding.start, finding.end)
        text = ends.text[finding.start : finding.end]
        if len(pieces) > 1 and _is_strong(finding, text, pieces, is_unchanged=finding.end <= ends.unchanged_end):
            crossing.append(JoinedValue(finding, pieces, text))
    if not crossing:
        return crossing
    findings_at_ends: dict[int, list[Finding]] = {}
    for number, finding in findings_in_texts:
        yield
        # Findings elsewhere in a text cannot overlap a piece.
        if finding.start < WINDOW_CHARACTERS or finding.end > len(texts[number].text) - WINDOW_CHARACTERS:
            findings_at_ends.setdefault(number, []).append(finding)
    values: list[JoinedValue] = []
    taken: set[tuple[str, Piece]] = set()
    for value in crossing:
        yield
        sourced_pieces = [(value.finding.source, piece) for piece in value.pieces]
        if taken.isdisjoint(sourced_pieces) and not _is_in_one_text(value, findings_at_ends):
            taken.update(sourced_pieces)
            values.append(value)
    return values


def _is_strong(finding: Finding, text: str, pieces: Sequence[Piece], *, is_unchanged: bool) -> bool:
    if finding.source not in _BUILT_IN:
        # A custom pattern may match any characters, so it could also match two consecutive numbers that are no value.
        return is_unchanged and _is_token(text)
    if finding.source == _EMAIL:
        # A decorator such as `@cache` at the start of code, or a sentence that begins with a capital letter, is no part
        # of an address.
        _, first_start, first_end = pieces[0]
        _, last_start, last_end = pieces[-1]
        return "@" in text[: first_end - first_start] and not text[last_start - last_end].isupper()
    if finding.source not in _SECRETS and sum(map(str.isalnum, text)) < _MIN_IDENTIFIER_CHARACTERS:
        return False
    return finding.score >= _STRONG_SCORE or finding.source == _CARD


def _is_in_one_text(value: JoinedValue, findings_at_ends: Mapping[int, Sequence[Finding]]) -> bool:
    """Return whether the value is already covered: a piece overlaps or is contained in a finding of its own text."""
    finding, first = value.finding, value.pieces[0]
    overlapping = [
        (other, piece)
        for piece in value.pieces
        for other in findings_at_ends.get(piece[0], ())
        if _overlaps(other, piece)
    ]
    same_source = [(other, piece) for other, piece in overlapping if other.source == finding.source]
    if not same_source:
        return any(other.score > finding.score and _contains(other, piece) for other, piece in overlapping)
    # The beginning of a token may match alone. The next text continues the token if it resembles a token.
    beginning, piece = same_source[0]
    continuation = value.text[beginning.end - first[1] :]
    return (
        len(same_source) > 1
        or piece != first
        or beginning.start != first[1]
        or finding.source not in _SECRETS
        or not _is_token(continuation)
        or any(piece != first for _, piece in overlapping)
    )


def _overlaps(finding: Finding, piece: Piece) -> bool:
    return finding.source in _BUILT_IN and finding.start < piece[2] and piece[1] < finding.end


def _contains(finding: Finding, piece: Piece) -> bool:
    return finding.start <= piece[1] and piece[2] <= finding.end


def _is_token(text: str) -> bool:
    """Return whether the text has both letters and digits, and is longer than an ordinary word with both."""
    return len(text) >= MIN_NUMBER_DIGITS and any(map(str.isdigit, text)) and any(map(str.isalpha, text))
