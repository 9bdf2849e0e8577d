"""Patterns for dates and dates of birth."""

from gatehouse.detection.catalog.shapes import entry, shape, word, words
from gatehouse.detection.validators import refutes
from gatehouse.detection.validators.contact import real_date

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|may|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_NAMED_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|March|Mar|Apr(?:il)?|June?|May|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
)
_YEAR = r"(?:1[89]|20)\d\d"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH_NUMBER = r"(?:0?[1-9]|1[0-2])"
_CLOCK = r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:\s?Z|\s?[+\-][01]\d:?[0-5]\d)?)?"
_DATE = "|".join(
    (
        rf"{_YEAR}[-/.](?:0[1-9]|1[0-2])[-/.](?:0[1-9]|[12]\d|3[01]){_CLOCK}",
        rf"{_YEAR}[-/]{_MONTH_NUMBER}[-/]{_DAY}",
        rf"(?:{_DAY}[-/.]{_MONTH_NUMBER}|{_MONTH_NUMBER}[-/.]{_DAY})[-/.](?:{_YEAR}|\d\d)",
        rf"{_DAY}(?:st|nd|rd|th)?(?: of)?[ \-.]{_MONTH}\.?[ \-,]{{1,2}}(?:{_YEAR}|\d\d)",
        rf"{_MONTH}\.?[ \-]{_DAY}(?:st|nd|rd|th)?,?[ \-]{_YEAR}",
        rf"{_MONTH}\.?[ \-,]{{1,2}}{_YEAR}",
    )
)
#: A short date: the name of a month with a capital letter and a day, or a month and a year.
_SHORT_DATE = "|".join(
    (
        rf"(?-i:{_NAMED_MONTH})\.? {_DAY}(?:st|nd|rd|th)?",
        rf"{_DAY}(?:st|nd|rd|th)?(?: of)?[ \-](?-i:{_NAMED_MONTH})",
        rf"{_MONTH_NUMBER}/{_YEAR}",
    )
)

PATTERNS = (
    entry(
        "pii",
        "log_only",
        "date",
        "Date",
        word(rf"{_DATE}|{_SHORT_DATE}", 0.7, refutes(real_date), ignore_case=True),
        word(rf"{_MONTH}[ \-]\d\d", 0.4, needs_context=True, ignore_case=True),
        word(rf"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", 0.3, needs_context=True),
        shape(
            rf"\b(?:in|since|from|until|of|by|year|before|after|during|around|born)\s(?P<value>{_YEAR})\b",
            0.6,
            ignore_case=True,
        ),
        word(r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day", 0.6, ignore_case=True),
        context=words("date, today, since, until, expires, expiry, valid"),
        examples=("on 2024-03-15T14:30:00Z", "21.5.2021", "5-MAY-2021", "March 3rd, 1999", "since 1984"),
        counterexamples=("version 2024.13.45", "31/31/2021", "1984 units"),
    ),
    entry(
        "pii",
        "redact",
        "date_of_birth",
        "Date of birth",
        word(_DATE, 0.3, refutes(real_date), needs_context=True, ignore_case=True),
        context=words(
            "born, date of birth, dob, d.o.b, birthdate, birth date, birthday, birth, geboren, geburtsdatum, né le, "
            "née le, date de naissance, fecha de nacimiento, nacido, nato il, data di nascita"
        ),
        examples=("DOB: 04/12/1987", "geboren am 3.4.1971", "she was born on March 3, 1999"),
        counterexamples=("Invoice date 04/12/2021", "released on March 3, 1999"),
    ),
)
