"""What the models of other makers have in common: their labels' names, and one finding where several overlap."""

from collections.abc import Iterable
from typing import Final

from gatehouse.detection.findings import Finding

#: Names that other makers give to what has a name here.
_OWN_NAMES: Final = {
    "per": "person",
    "people": "person",
    "org": "organization",
    "organisation": "organization",
    "company": "organization",
    "loc": "location",
    "gpe": "location",
    "fac": "location",
    "place": "location",
    "norp": "nrp",
    "date_of_birth": "date_of_birth",
    "dob": "date_of_birth",
    "street_address": "address",
}


def own_name(label: str) -> str:
    """Of a label as its maker wrote it: lower-case snake case, the taxonomy's word where there is one."""
    snake = "_".join(label.lower().replace("-", " ").split())
    return _OWN_NAMES.get(snake, snake)


def without_overlaps(findings: Iterable[Finding]) -> list[Finding]:
    """In order; of those that overlap the surest stays, then the longest, then the first."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (-f.score, f.start - f.end, f.start)):
        if all(finding.end <= other.start or other.end <= finding.start for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda finding: finding.start)
