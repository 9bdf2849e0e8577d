"""How overlaps are resolved (docs/dlp.md)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.detection.findings import Finding
from gatehouse.detection.overlaps import clusters, resolve


def finding(start: int, end: int, entity_type: str = "ssn", score: float = 0.6, source: str = "a") -> Finding:
    return Finding(start, end, entity_type, score, source)


def strength(found: Finding) -> int:
    return {"blocked": 3, "redacted": 2}.get(found.entity_type, 0)


PAIRS = {
    "the stronger action before the longer finding": (finding(3, 5, "blocked"), finding(0, 20)),
    "proven before longer": (finding(0, 9, score=1.0), finding(0, 12, score=0.9)),
    "longer before shorter": (finding(0, 12), finding(2, 9, score=0.9)),
    "specific before generic": (finding(0, 9), finding(0, 9, "generic_secret", 0.8)),
    "higher score": (finding(0, 9, score=0.8), finding(0, 9, score=0.7)),
    "earlier": (finding(0, 9), finding(4, 13)),
    "name of the source": (finding(0, 9, source="a"), finding(0, 9, source="b")),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS.keys())
def test_of_two_over_the_same_text_one_comes_first(first: Finding, second: Finding) -> None:
    for order in ([first, second], [second, first]):
        resolved = resolve(order, strength)
        assert first in resolved
        assert second not in resolved


def test_what_sticks_out_stays_with_what_sticks_out() -> None:
    resolved = resolve([finding(0, 10, "blocked"), finding(6, 14, "redacted"), finding(20, 22)], strength)
    assert [(f.start, f.end, f.entity_type) for f in resolved] == [
        (0, 10, "blocked"),
        (10, 14, "redacted"),
        (20, 22, "ssn"),
    ]


def test_findings_that_touch_do_not_overlap() -> None:
    assert [len(cluster) for cluster in clusters([finding(0, 5), finding(5, 9), finding(8, 12)])] == [1, 2]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from(["blocked", "redacted", "ssn"]))))
def test_nothing_overlaps_and_nothing_is_left_out(spans: list[tuple[int, int, str]]) -> None:
    found = [finding(start, start + length, kind) for start, length, kind in spans]
    resolved = resolve(found, strength)
    assert resolved == resolve(found[::-1], strength)
    covered = [place for f in resolved for place in range(f.start, f.end)]
    assert len(covered) == len(set(covered))
    assert set(covered) == {place for f in found for place in range(f.start, f.end)}
    strongest = {place: max(strength(f) for f in found if f.start <= place < f.end) for place in covered}
    assert all(strength(f) == strongest[place] for f in resolved for place in range(f.start, f.end))
