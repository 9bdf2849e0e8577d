import pytest

from gatehouse.detection.entities.choosing import own_name, without_overlaps
from gatehouse.detection.findings import Finding


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("PERSON", "person"),
        ("ORG", "organization"),
        ("GPE", "location"),
        ("Date of Birth", "date_of_birth"),
        ("e-mail", "e_mail"),
    ],
)
def test_a_vendor_label_is_mapped_to_the_taxonomy_name(label: str, name: str) -> None:
    assert own_name(label) == name


def finding(start: int, end: int, score: float) -> Finding:
    return Finding(start, end, "person", score, "person")


def test_of_overlapping_findings_the_highest_score_stays() -> None:
    assert without_overlaps([finding(0, 9, 0.6), finding(5, 12, 0.9), finding(12, 14, 0.5)]) == [
        finding(5, 12, 0.9),
        finding(12, 14, 0.5),
    ]


def test_of_findings_with_equal_scores_the_longest_stays() -> None:
    assert without_overlaps([finding(0, 3, 0.6), finding(0, 9, 0.6)]) == [finding(0, 9, 0.6)]
