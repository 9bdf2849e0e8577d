"""The page of patterns matches the catalogue."""

from bench.dlp.page import PAGE, between, patterns


def test_the_page_lists_the_patterns_as_they_are() -> None:
    page = PAGE.read_text()
    assert between(page, "patterns", patterns()) == page, "run: .venv/bin/python bench/dlp/page.py"


def test_the_page_has_figures() -> None:
    assert "| a_presidio |" in PAGE.read_text()
