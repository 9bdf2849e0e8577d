"""Validates numbers of persons in the Americas, Asia, Africa and Oceania."""

from typing import Final

from gatehouse.detection.validators.checksums import (
    LETTERS,
    all_same,
    compact,
    digits,
    luhn,
    mod_11_check,
    verhoeff,
    weighted,
)
from gatehouse.detection.validators.dates import yymmdd, yyyymmdd

#: Numbers that are never issued, because they were printed in advertisements, films or forms.
_SSN_ADVERTISED: Final = frozenset({"078051120", "219099999", "457555462", "123456789"})


def us_ssn(text: str) -> bool:
    """Check that the area is not 000, 666 or above 899, that the group is not 00, and that the serial number is not
    0000. Also rejects numbers that are never issued."""
    number = digits(text)
    return (
        number[:3] not in {"000", "666"}
        and number[0] != "9"
        and number[3:5] != "00"
        and number[5:] != "0000"
        and number not in _SSN_ADVERTISED
        and not all_same(number)
    )


def us_itin(text: str) -> bool:
    number = digits(text)
    group = int(number[3:5])
    return number[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)


def ca_sin(text: str) -> bool:
    number = digits(text)
    return number[0] not in "08" and not all_same(number) and luhn(number)


def au_tfn(text: str) -> bool:
    return weighted(digits(text), (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def in_aadhaar(text: str) -> bool:
    """Check that the first digit is not 0 or 1, that the number is not a palindrome, and the Verhoeff check digit."""
    number = digits(text)
    return number[0] in "23456789" and number != number[::-1] and verhoeff(number)


def kr_resident(text: str) -> bool:
    """Check the date of birth and the digit for sex and century. This digit is 1 to 4 for citizens and 5 to 8 for
    foreigners. For persons born since 2000 it is 3, 4, 7 or 8; then the year must be before 2040. Numbers issued since
    2020 have no check digit."""
    number = digits(text)
    return (
        not all_same(number) and yymmdd(number) and (number[6] in "1256" or (number[6] in "3478" and number[0] < "4"))
    )


_THAI_PROVINCES: Final = frozenset(
    {*range(10, 28), *range(30, 50), *range(50, 59), *range(60, 68), *range(70, 78), *range(80, 87), *range(90, 97)}
)


def th_national(text: str) -> bool:
    number = digits(text)
    check = (11 - weighted(number[:12], range(13, 1, -1)) % 11) % 10
    return (
        not all_same(number)
        and number[0] in "12345678"
        and int(number[1:3]) in _THAI_PROVINCES
        and check == int(number[12])
    )


def tr_national(text: str) -> bool:
    places = [int(digit) for digit in text]
    tenth = (7 * sum(places[0:9:2]) - sum(places[1:8:2])) % 10
    return places[0] != 0 and tenth == places[9] and sum(places[:10]) % 10 == places[10]


def sg_nric(text: str) -> bool:
    number = text.upper()
    total = weighted(number[1:8], (2, 7, 6, 5, 4, 3, 2))
    total += {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    if number[0] == "M":
        return "KLJNPQRTUWX"[10 - total % 11] == number[8]
    return ("JZIHGFEDCBA" if number[0] in "ST" else "XWUTRQPNMLK")[total % 11] == number[8]


def cn_resident(text: str) -> bool:
    number = text.upper()
    total = weighted(number[:17], (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    return yyyymmdd(number[6:14]) and "10X98765432"[total % 11] == number[17]


def tw_national(text: str) -> bool:
    number = text.upper()
    region = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0]) + 10
    return (region // 10 + region % 10 * 9 + weighted(number[1:9], range(8, 0, -1)) + int(number[9])) % 10 == 0


def hk_identity(text: str) -> bool:
    number = compact(text)
    values = [36] * (9 - len(number)) + [int(character, 36) for character in number[:-1]]
    total = sum(value * weight for value, weight in zip(values, range(9, 1, -1), strict=True))
    return (11 - total % 11) % 11 == (10 if number[-1] == "A" else int(number[-1], 36))


def jp_my_number(text: str) -> bool:
    number = digits(text)
    remainder = weighted(number[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if remainder <= 1 else 11 - remainder) == int(number[11])


def il_identity(text: str) -> bool:
    number = digits(text)
    return not all_same(number) and luhn(number)


def id_nik(text: str) -> bool:
    """Check the province and the date of birth, DDMMYY. For women, 40 is added to the day."""
    day = int(text[6:8])
    return 11 <= int(text[:2]) <= 96 and yymmdd(text[10:12] + text[8:10] + f"{day - 40 if day > 40 else day:02d}")


def my_nric(text: str) -> bool:
    return yymmdd(digits(text))


def za_identity(text: str) -> bool:
    """Check the date of birth, the digit for citizenship (0, 1 or 2), and the Luhn digit."""
    return yymmdd(text) and text[10] in "012" and luhn(text)


def eg_national(text: str) -> bool:
    return yymmdd(text[1:7])


def br_cpf(text: str) -> bool:
    number = digits(text)
    first = mod_11_check(number[:9], range(10, 1, -1))
    second = mod_11_check(number[:10], range(11, 1, -1))
    return not all_same(number) and f"{first % 11 % 10}{second % 11 % 10}" == number[9:]


def cl_rut(text: str) -> bool:
    number = compact(text)
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(number[:-1])))
    return "0K987654321"[total % 11] == number[-1]


def ar_cuil(text: str) -> bool:
    number = digits(text)
    check = mod_11_check(number[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2))
    return (0 if check == 11 else check) == int(number[10])


def mx_curp(text: str) -> bool:
    number = text.upper()
    alphabet = "0123456789ABCDEFGHIJKLMN" + "Ñ" + LETTERS[14:]
    total = sum(alphabet.index(character) * (18 - place) for place, character in enumerate(number[:17]))
    return yymmdd(number[4:10]) and (10 - total % 10) % 10 == int(number[17])


def imei(text: str) -> bool:
    number = digits(text)
    return not all_same(number) and number[:2] != "00" and luhn(number)
