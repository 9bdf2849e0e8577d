"""Functions for models of other vendors: they translate the names of labels and remove overlapping findings."""

from collections.abc import Iterable
from typing import Final

from gatehouse.detection.findings import Finding

#: Maps labels of other vendors to the names of the taxonomy.
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
    """Return the name of the taxonomy for a vendor's label. If there is none, return the label in snake case."""
    snake = "_".join(label.lower().replace("-", " ").split())
    return _OWN_NAMES.get(snake, snake)


def without_overlaps(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings in order, without overlaps. Of overlapping findings, only the one with the highest score is
    returned. If scores are equal, it is the longest one, and then the first one."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (-f.score, f.start - f.end, f.start)):
        if all(finding.end <= other.start or other.end <= finding.start for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda finding: finding.start)
