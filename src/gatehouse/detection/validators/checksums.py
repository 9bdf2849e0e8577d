"""Check-digit schemes that are used by several kinds of numbers. The functions take ASCII digits. Only functions whose
description mentions letters also accept letters."""

from collections.abc import Iterable, Sequence
from operator import mul
from typing import Final

DIGITS: Final = "0123456789"
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Only(dict[int, str | None]):
    """A table for `str.translate` that removes all characters that are not in the table."""

    def __missing__(self, point: int) -> None:
        return None


_DIGITS_ALONE: Final = _Only({ord(digit): digit for digit in DIGITS})
#: A table for `bytes.translate`. It replaces each digit by twice the digit, less 9 if that has two digits.
_DOUBLED: Final = bytes(
    0x30 + (2 * (byte - 0x30) - 9 * (byte > 0x34)) if 0x30 <= byte < 0x3A else byte for byte in range(256)
)


def compact(text: str) -> str:
    """Return the letters and digits in upper case, without separators."""
    return "".join(filter(str.isalnum, text)).upper()


def digits(text: str) -> str:
    return text.translate(_DIGITS_ALONE)


def weighted(text: str, weights: Iterable[int]) -> int:
    return sum(map(mul, map(int, text), weights))


def all_same(text: str) -> bool:
    return len(set(text)) <= 1


def luhn(text: str) -> bool:
    data = text.encode()
    doubled = data[-2::-2].translate(_DOUBLED)
    return (sum(data[::-2]) + sum(doubled) - 0x30 * len(data)) % 10 == 0


def letters_as_numbers(text: str) -> str:
    """Replace each letter by a number: A by 10, Z by 35 (ISO 13616, ISO 17442, ISO 6166). Digits are unchanged."""
    return "".join(str(int(character, 36)) for character in text)


def mod_97(text: str) -> bool:
    """Check a text of letters and digits by ISO 7064 MOD 97-10. The check digits are the last two characters."""
    return int(letters_as_numbers(text)) % 97 == 1


def mod_11_10(text: str) -> bool:
    """Check digits by ISO 7064 MOD 11,10, which the German tax id and the Croatian OIB use."""
    product = 10
    for character in text[:-1]:
        product = (product + int(character)) % 10 or 10
        product = product * 2 % 11
    return (11 - product) % 10 == int(text[-1])


_VERHOEFF_PRODUCT: Final = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_VERHOEFF_PERMUTATION: Final = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)


def verhoeff(text: str) -> bool:
    check = 0
    for place, character in enumerate(reversed(text)):
        check = int(_VERHOEFF_PRODUCT[check][int(_VERHOEFF_PERMUTATION[place % 8][int(character)])])
    return check == 0


def repeated_731(text: str) -> int:
    """Return the sum of digits and letters with the repeated weights 7, 3, 1 (ICAO 9303). Letters count 10 to 35."""
    return sum(int(character, 36) * (7, 3, 1)[place % 3] for place, character in enumerate(text))


def mod_11_check(text: str, weights: Sequence[int]) -> int:
    """Return 11 minus the weighted sum modulo 11, which is between 1 and 11. The meaning of 10 and 11 depends on the
    scheme."""
    return 11 - weighted(text, weights) % 11
