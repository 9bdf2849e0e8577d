"""Validates dates within numbers."""

import calendar
import re
from typing import Final

#: A Unix time between 2014 and 2033, in seconds, milliseconds, microseconds or nanoseconds.
_UNIX_TIME: Final = re.compile(r"1[4-9]\d{8}(?:\d{3}){0,3}")


def is_date(year: int, month: int, day: int) -> bool:
    return 1 <= month <= 12 and (1 <= day <= 28 or 28 < day <= calendar.monthrange(year, month)[1])


def yymmdd(text: str) -> bool:
    """Return whether the first six digits are a date. The century is not known, so 29 February is accepted if it exists
    in 19YY or 20YY."""
    year, month, day = int(text[:2]), int(text[2:4]), int(text[4:6])
    return any(is_date(century + year, month, day) for century in (1900, 2000))


def ddmmyy(text: str) -> bool:
    return yymmdd(text[4:6] + text[2:4] + text[:2])


def yyyymmdd(text: str) -> bool:
    return 1800 <= int(text[:4]) <= 2100 and is_date(int(text[:4]), int(text[4:6]), int(text[6:8]))


def no_time(text: str) -> bool | None:
    """Reject Unix times, with `_UNIX_TIME`."""
    return False if _UNIX_TIME.fullmatch(text) else None
