"""One written rule for findings that lie over each other (docs/dlp.md, How overlaps are resolved)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from gatehouse.detection.findings import Finding
from gatehouse.detection.pattern import VALID_SCORE

#: What is only said because nothing better is known.
_GENERIC: Final = frozenset({"generic_secret", "high_entropy_string", "password", "url", "date", "phone_number"})


def clusters(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Findings that hang together by overlaps. Ones that only touch do not."""
    cluster: list[Finding] = []
    end = 0
    for finding in sorted(findings, key=lambda finding: (finding.start, finding.end)):
        if cluster and finding.start >= end:
            yield cluster
            cluster = []
        end = max(end, finding.end) if cluster else finding.end
        cluster.append(finding)
    if cluster:
        yield cluster


def resolve(findings: Iterable[Finding], strength: Callable[[Finding], int]) -> list[Finding]:
    """Findings without overlaps, in order.

    Of several over the same text the first of these stays: what is acted on more strongly (`strength`, by the caller),
    proven before unproven, longer before shorter, specific before generic, higher score, earlier, name of the source.
    What sticks out of a stronger one stays with what sticks out, so that nothing that was found goes unnoticed.
    """
    resolved = [kept for cluster in clusters(findings) for kept in _resolved(cluster, strength)]
    return sorted(resolved, key=lambda finding: finding.start)


def _resolved(cluster: Sequence[Finding], strength: Callable[[Finding], int]) -> list[Finding]:
    if len(cluster) == 1:
        return list(cluster)
    kept: list[Finding] = []
    for finding in sorted(cluster, key=lambda finding: _rank(finding, strength(finding))):
        pieces = [(finding.start, finding.end)]
        for other in kept:
            pieces = [piece for whole in pieces for piece in _outside(whole, other)]
        kept += (msgspec.structs.replace(finding, start=start, end=end) for start, end in pieces)
    return kept


def _outside(piece: tuple[int, int], other: Finding) -> Iterator[tuple[int, int]]:
    start, end = piece
    if other.end <= start or end <= other.start:
        yield piece
        return
    if start < other.start:
        yield start, other.start
    if other.end < end:
        yield other.end, end


def _rank(finding: Finding, strength: int) -> tuple[int, bool, int, bool, float, int, str]:
    return (
        -strength,
        finding.score < VALID_SCORE,
        finding.start - finding.end,
        finding.entity_type in _GENERIC,
        -finding.score,
        finding.start,
        finding.source,
    )
