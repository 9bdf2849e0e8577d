"""Validates numbers of persons in Europe."""

from typing import Final

from gatehouse.detection.validators.checksums import (
    LETTERS,
    all_same,
    compact,
    digits,
    luhn,
    mod_11_10,
    mod_11_check,
    repeated_731,
    weighted,
)
from gatehouse.detection.validators.dates import ddmmyy, is_date, yymmdd, yyyymmdd

_SPANISH: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_FINNISH: Final = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_ITALIAN_ODD: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def es_nif(text: str) -> bool:
    number = compact(text)
    return _SPANISH[int(number[:-1]) % 23] == number[-1]


def es_nie(text: str) -> bool:
    number = compact(text)
    return _SPANISH[int(str("XYZ".index(number[0])) + number[1:-1]) % 23] == number[-1]


def fi_identity_code(text: str) -> bool:
    """Check DDMMYY, the sign of the century, three digits, and the check character: the nine digits modulo 31."""
    number = text.upper()
    century = 1800 if number[6] == "+" else 1900 if number[6] in "-UVWXY" else 2000
    born = is_date(century + int(number[4:6]), int(number[2:4]), int(number[:2]))
    return born and number[7:10] >= "002" and _FINNISH[int(number[:6] + number[7:10]) % 31] == number[10]


def se_personal(text: str) -> bool:
    """Check a number of ten or twelve digits. In a coordination number, 60 is added to the day."""
    number = digits(text)
    day = int(number[-6:-4])
    born = number[:-6] + f"{day - 60 if day > 60 else day:02d}"
    dated = yyyymmdd(born) if len(number) == 12 else yymmdd(born)
    return dated and luhn(number[-10:])


def se_personal_of_adults(text: str) -> bool:
    """Return whether this is the number of a person who was born before 2000. Later numbers look like a current date
    with a time or serial number."""
    number = digits(text)
    return (number[:2] in {"18", "19"} if len(number) == 12 else number[0] in "456789") and se_personal(text)


def pl_pesel(text: str) -> bool:
    century, month = divmod(int(text[2:4]), 20)
    year = (1900, 2000, 2100, 2200, 1800)[century] + int(text[:2])
    check = (10 - weighted(text[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10
    return is_date(year, month, int(text[4:6])) and check == int(text[10])


def it_fiscal_code(text: str) -> bool:
    number = text.upper()
    total = 0
    for place, character in enumerate(number[:15]):
        value = int(character) if character.isdigit() else LETTERS.index(character)
        total += value if place % 2 else _ITALIAN_ODD[value]
    return LETTERS[total % 26] == number[15]


def icao_checked(text: str) -> bool:
    """Check that the last character is the check digit of ICAO 9303 for the characters before it."""
    number = compact(text)
    return number[-1].isdigit() and repeated_731(number[:-1]) % 10 == int(number[-1])


def de_document(text: str) -> bool:
    """Check that there is a digit after the first character. Documents since 2010 have nine characters: a letter of the
    authority, then digits and consonants. Older ones have `T` and eight digits."""
    return any(character.isdigit() for character in text[1:])


def de_pension(text: str) -> bool:
    """Check the date of birth and the check digit. The number has an area, DDMMYY, the first letter of the name at
    birth, a serial number and the check digit."""
    number = text.upper()
    source = number[:8] + f"{LETTERS.index(number[8]) + 1:02d}" + number[9:11]
    products = (int(digit) * weight for digit, weight in zip(source, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    total = sum(product // 10 + product % 10 for product in products)
    return ddmmyy(number[2:8]) and total % 10 == int(number[11])


def de_tax_id(text: str) -> bool:
    """Check the check digit of eleven digits. No digit may occur more than three times among the first ten."""
    number = digits(text)
    return number[0] != "0" and max(map(number[:10].count, number)) <= 3 and mod_11_10(number)


def fr_nir(text: str) -> bool:
    """Check the month and the check number: 97 minus the number modulo 97. The number has sex, year, month, place and
    order. Corsica's places 2A and 2B are treated as 19 and 18."""
    number = compact(text).replace("2A", "19", 1).replace("2B", "18", 1)
    month = int(number[3:5])
    return (1 <= month <= 12 or 20 <= month <= 42 or month >= 50) and 97 - int(number[:13]) % 97 == int(number[13:])


def nl_bsn(text: str) -> bool:
    number = digits(text)
    return not all_same(number) and (weighted(number[:8], range(9, 1, -1)) - int(number[8])) % 11 == 0


def be_national(text: str) -> bool:
    """Check the month, the day and the last two digits. For persons born since 2000, a 2 is put before the number when
    the last two digits are computed."""
    number = digits(text)
    return number[2:6] <= "1231" and any(
        97 - int(century + number[:9]) % 97 == int(number[9:]) for century in ("", "2")
    )


def no_birth_number(text: str) -> bool:
    number = digits(text)
    first = mod_11_check(number[:9], (3, 7, 6, 1, 8, 9, 4, 5, 2)) % 11
    second = mod_11_check(number[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    day = int(number[:2])
    born = f"{day - 40 if day > 40 else day:02d}{number[2:6]}"
    return ddmmyy(born) and first == int(number[9]) and second == int(number[10])


def dk_cpr(text: str) -> bool:
    return ddmmyy(digits(text)[:6])


def ch_ahv(text: str) -> bool:
    """Check the check digit of EAN-13. The number begins with 756, the code of Switzerland."""
    number = digits(text)
    return (10 - weighted(number[:12], (1, 3) * 6) % 10) % 10 == int(number[12])


def pt_nif(text: str) -> bool:
    number = digits(text)
    check = mod_11_check(number[:8], range(9, 1, -1))
    return (check if check < 10 else 0) == int(number[8])


def cz_birth_number(text: str) -> bool:
    """Check that the number begins with a date and is a multiple of 11. For women, 50 is added to the month. Numbers
    with 20 added to the month are rare and not accepted, because they look like the number of an invoice:
    `202403/0042`."""
    number = digits(text)
    month = int(number[2:4]) % 50
    return yymmdd(f"{number[:2]}{month:02d}{number[4:6]}") and int(number) % 11 == 0


def ro_cnp(text: str) -> bool:
    check = weighted(text[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return yymmdd(text[1:7]) and (1 if check == 10 else check) == int(text[12])


def hr_oib(text: str) -> bool:
    return mod_11_10(text)


def ie_pps(text: str) -> bool:
    number = text.upper()
    total = weighted(number[:7], range(8, 1, -1))
    if len(number) == 9 and number[8] != "W":
        total += 9 * (LETTERS.index(number[8]) + 1)
    return "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] == number[7]


def uk_driving_licence(text: str) -> bool:
    """Check the month, to which 50 is added for women, and the day. The number has surname, decade, month, day and
    year."""
    number = text.upper()
    return int(number[6:8]) % 50 in range(1, 13) and 1 <= int(number[8:10]) <= 31


def at_social_security(text: str) -> bool:
    number = digits(text)
    check = weighted(number[:3] + number[4:], (3, 7, 9, 5, 8, 4, 2, 1, 6)) % 11
    return number[0] != "0" and check == int(number[3]) and ddmmyy(number[4:])
