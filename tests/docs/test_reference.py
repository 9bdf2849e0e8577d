"""docs/reference/ has the present output of `make reference`."""

from pathlib import Path

import pytest
from tools.reference import FOLDER, pages

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == PAGES[name], "run `make reference`"


def test_the_reference_has_no_other_pages() -> None:
    assert {path.name for path in Path(FOLDER).iterdir()} == PAGES.keys()
