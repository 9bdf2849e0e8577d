"""Validates numbers of patients, practitioners and insurers."""

from typing import Final

from gatehouse.detection.validators.checksums import LETTERS, all_same, compact, digits, luhn, weighted


def nhs(text: str) -> bool:
    """Check the check digit of a UK NHS number: 11 minus the weighted sum modulo 11. Numbers for which it would be 10
    are never issued."""
    number = digits(text)
    check = (11 - weighted(number[:9], range(10, 1, -1)) % 11) % 11
    return not all_same(number) and check == int(number[9])


def nhs_and_no_phone(text: str) -> bool:
    """Check an NHS number, and reject North American phone numbers. Their area code and exchange begin with 2 to 9."""
    number = digits(text)
    return nhs(text) and not (number[0] >= "2" and number[3] >= "2")


def npi(text: str) -> bool:
    """Check the Luhn digit of a US NPI with the issuer's prefix 80840."""
    number = digits(text)
    return number[0] in "12" and luhn("80840" + number)


def dea(text: str) -> bool:
    """Check the last digit of a US DEA number. Add the digits 1, 3 and 5, and twice the digits 2, 4 and 6. The last
    digit of the sum is the check digit."""
    places = [int(digit) for digit in text[2:]]
    return (sum(places[0:6:2]) + 2 * sum(places[1:6:2])) % 10 == places[6]


def kvnr(text: str) -> bool:
    """Check the check digit of a German health insurance number. The letter is replaced by two digits. The weights are
    1 and 2 in turn, and the digits of each product are added."""
    number = compact(text)
    source = f"{LETTERS.index(number[0]) + 1:02d}{number[1:9]}"
    products = (int(digit) * (1, 2)[place % 2] for place, digit in enumerate(source))
    return sum(product // 10 + product % 10 for product in products) % 10 == int(number[9])


def lanr(text: str) -> bool:
    """Check the seventh digit of a German physician's number: the check digit of the six digits before it, with the
    weights 4 and 9 in turn."""
    return (10 - weighted(text[:6], (4, 9, 4, 9, 4, 9)) % 10) % 10 == int(text[6])


def au_medicare(text: str) -> bool:
    number = digits(text)
    return number[0] in "23456" and weighted(number[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == int(number[8])


#: The first two digits of German practice numbers: the codes of the associations of physicians, and the codes 38 and 51
#: of former areas.
BSNR_AREAS: Final = frozenset(
    {*range(1, 4), 17, 20, 21, 31, 35, 38, 39, 40, 46, 47, 51, 52, 71, 72, 73, 74, 78, 79, 83, 88, 93, 98, 99}
)


def bsnr(text: str) -> bool:
    return int(text[:2]) in BSNR_AREAS
