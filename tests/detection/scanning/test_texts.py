"""Whole texts: the fast search of texts without disguises finds the same as the full search."""

# ruff: noqa: RUF001 - look-alikes are among the texts

import random

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.scanning import texts

MATCHER = Matcher(BUILT_IN)
VALUES = (
    "4111111111111111",
    "jane.doe@example.com",
    "AKIAIOSFODNN7EXAMPLE",
    "123-45-6789",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "DE89370400440532013000",
)
WORDS = ("words ", "and so it goes ", "– ", "“quoted” ", "e－mail: ", "ssn ", "… ", "number ")
#: Characters that are read like a backslash, a plus, a dash or an equals sign.
LOOKALIKES = ("＼n", "﹨n", "＋", "–", "＝")


def places(findings: list[Finding]) -> set[tuple[int, int, str]]:
    return {(finding.start, finding.end, finding.entity_type) for finding in findings}


@pytest.mark.parametrize("seed", range(8))
def test_the_fast_search_finds_the_same_as_the_full_search(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose, scan_short, fast = random.Random(seed), texts.scan_short, 0
    for _ in range(150):
        parts = choose.choices(WORDS, k=choose.randint(8, 25))
        value = choose.choice(VALUES)[:: choose.choice((1, 1, -1))]
        parts.insert(choose.randrange(len(parts)), choose.choice(("", *LOOKALIKES)) + value + choose.choice((" ", "–")))
        text = "".join(parts)
        short_findings = scan_short([MATCHER], text)
        if short_findings is None:
            continue
        fast += 1
        monkeypatch.setattr(texts, "scan_short", lambda *_, **__: None)
        full = texts.scan([MATCHER], text)
        monkeypatch.setattr(texts, "scan_short", scan_short)
        assert places(short_findings) == places(full), text
    assert fast > 10
