"""Validates the structure of phone numbers, dates and e-mail addresses."""

import re
from typing import Final

from gatehouse.detection.validators.checksums import all_same, digits
from gatehouse.detection.validators.dates import is_date

_ISO_DATE: Final = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})")
_DATE: Final = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})([-/.])([0-9]{2,4})")
_FILE_ENDINGS: Final = frozenset(
    ["png", "jpg", "jpeg", "gif", "svg", "webp", "js", "css", "ts", "py", "json", "html", "md"]
)


def email_domain(text: str) -> bool:
    """Return whether this is an e-mail address without empty parts, and not a file name (`icon@2x.png`)."""
    local, _, domain = text.rpartition("@")
    return (
        ".." not in text
        and not local.endswith(".")
        and "-." not in domain
        and domain.rpartition(".")[2].lower() not in _FILE_ENDINGS
    )


def international_phone(text: str) -> bool:
    """Return whether the number has 8 to 15 digits (E.164). The prefix `00` and an extension are not counted."""
    number = digits(text.partition("x")[0])
    return 8 <= len(number.removeprefix("00")) <= 15


def national_phone(text: str) -> bool:
    """Return whether this is a local number: it has seven to eleven digits that are not all equal, and is not a
    date."""
    number = digits(text.partition("x")[0])
    return 7 <= len(number) <= 11 and not all_same(number) and not _ISO_DATE.match(text) and not _day_first(text)


def _day_first(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and real_date(text)


#: German compounds of `Platz` and `Weg` that are not streets, such as places to park or work and ways of doing things.
_NO_STREET: Final = re.compile(
    r"(?:arbeits|ausbildungs|camping|fenster|gang|kita|lade|lager|liege|medaillen|park|pflege|podest|praktikums|rang|rast|"
    r"schlaf|sitz|speicher|stamm|start|steck|steh|stell|studien|tabellen|therapie|treff|zelt)platz\s|"
    r"(?:aus|beschwerde|bildungs|brems|dienst|feder|flucht|hin|instanzen|irr|kommunikations|liefer|lösungs|mittel|post|"
    r"rechts|reise|rettungs|rück|transport|um|verbindungs|versand|vertriebs|zahlungs)weg\s",
    re.IGNORECASE,
)


def german_street(text: str) -> bool:
    """Return whether this is a street address, unlike `Stellplatz 12` or `Rückweg 30`."""
    return _NO_STREET.match(text) is None


def real_date(text: str) -> bool:
    """Return whether the date exists. Either the day or the month may be first. A date with the name of a month is not
    checked."""
    if match := _ISO_DATE.match(text):
        return is_date(int(match[1]), int(match[2]), int(match[3]))
    if match := _DATE.fullmatch(text):
        first, second, year = int(match[1]), int(match[3]), int(match[5])
        year += 2000 if year < 100 else 0
        return match[2] == match[4] and (is_date(year, second, first) or is_date(year, first, second))
    return True
