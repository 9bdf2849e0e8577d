import pytest

from gatehouse.detection.entities.embedded import find_births


def births_in(text: str) -> list[str]:
    return [text[finding.start : finding.end] for finding in find_births(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DOB: 12/03/1980", "12/03/1980"),
        ("She was born on May 5, 1971 in Lima", "May 5, 1971"),
        ("Date of birth (dd/mm/yyyy): 1980-01-31.", "1980-01-31"),
        ('"date_of_birth": "1980-01-31"', "1980-01-31"),
        ("Ada Keller, geb. 3. März 1969", "3. März 1969"),
        ("née le 4 août 1990", "4 août 1990"),
        ("Fecha de nacimiento: 4 de agosto de 1990", "4 de agosto de 1990"),
        ("Geburtsdatum\n12.03.1980", "12.03.1980"),
        ("birthday 1st of June 2001", "1st of June 2001"),
        ("生年月日 1980年1月31日", "1980年1月31日"),
    ],
)
def test_a_date_after_words_of_birth_is_found(text: str, expected: str) -> None:
    assert births_in(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "The meeting is on 12/03/1980.",
        "She was born in 1980.",
        "born to run 12345",
        "DOB unknown, invoice of the company 1/2",
    ],
)
def test_other_dates_are_not_found(text: str) -> None:
    assert births_in(text) == []
