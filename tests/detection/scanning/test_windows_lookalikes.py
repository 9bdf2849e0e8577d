"""Tests that the stream scanner finds values written with look-alike characters when the text arrives in chunks."""

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.scanning import texts
from gatehouse.detection.scanning.windows import Scanner

MATCHER = Matcher(BUILT_IN)
#: Translation tables. Each maps one character to one character, so offsets do not change.
TRANSLATIONS = {
    "full-width": str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)}),
    "full-width digits": str.maketrans({str(digit): chr(0xFF10 + digit) for digit in range(10)}),
    "Arabic digits": str.maketrans({str(digit): chr(0x660 + digit) for digit in range(10)}),
}
VALUES = ("4111111111111111", "jane.doe@example.com", "AKIAIOSFODNN7EXAMPLE", "DE89370400440532013000")
#: Texts before and after a value. The last one is long enough that the scanner releases the value.
CONTEXTS = (("", ""), ("and so it goes on ", ""), ("a card: ", " and more words follow, enough to let the first go"))


def scan_in_chunks(text: str, size: int) -> list[Finding]:
    """Scan the text in chunks of `size` characters, and return all findings. Fails if a finding begins in released
    text."""
    scanner, findings, released = Scanner([MATCHER]), [], 0
    for start in range(0, len(text), size):
        scanner.push(text[start : start + size])
        new, released_offset = scanner.advance(final=start + size >= len(text))
        assert all(finding.start >= released for finding in new)
        findings += new
        released = released_offset
    return findings


@pytest.mark.parametrize("translation", TRANSLATIONS)
@pytest.mark.parametrize("value", VALUES)
def test_a_stream_gives_the_same_findings_as_the_whole_text(value: str, translation: str) -> None:
    for before, after in CONTEXTS:
        text = before + value.translate(TRANSLATIONS[translation]) + after
        expected_spans = {(finding.start, finding.end) for finding in texts.scan([MATCHER], text, decoded=False)}
        assert expected_spans
        for size in (*range(1, 9), 32, 40):
            assert {(finding.start, finding.end) for finding in scan_in_chunks(text, size)} == expected_spans
