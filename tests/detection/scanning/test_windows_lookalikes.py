"""Values in look-alike characters, in texts that arrive in pieces."""

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.scanning import texts
from gatehouse.detection.scanning.windows import Scanner

MATCHER = Matcher(BUILT_IN)
#: Each replaces a character by one other character, so that positions do not change.
WRITINGS = {
    "full-width": str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)}),
    "full-width digits": str.maketrans({str(digit): chr(0xFF10 + digit) for digit in range(10)}),
    "Arabic digits": str.maketrans({str(digit): chr(0x660 + digit) for digit in range(10)}),
}
VALUES = ("4111111111111111", "jane.doe@example.com", "AKIAIOSFODNN7EXAMPLE", "DE89370400440532013000")
AROUND = (("", ""), ("and so it goes on ", ""), ("a card: ", " and more words follow, enough to let the first go"))


def in_pieces(text: str, size: int) -> list[Finding]:
    """Return the findings of the text in pieces. Fails if a finding begins in released text."""
    scanner, findings, released = Scanner([MATCHER]), [], 0
    for start in range(0, len(text), size):
        scanner.push(text[start : start + size])
        new, place = scanner.advance(final=start + size >= len(text))
        assert all(finding.start >= released for finding in new)
        findings += new
        released = place
    return findings


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("value", VALUES)
def test_a_stream_gives_the_same_findings_as_the_whole_text(value: str, writing: str) -> None:
    for before, after in AROUND:
        text = before + value.translate(WRITINGS[writing]) + after
        expected_spans = {(finding.start, finding.end) for finding in texts.scan([MATCHER], text, decoded=False)}
        if "full-width" in writing or value.isdigit():
            assert expected_spans
        for size in (*range(1, 9), 32, 40):
            assert {(finding.start, finding.end) for finding in in_pieces(text, size)} == expected_spans
