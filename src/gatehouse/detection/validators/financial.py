"""Validates numbers of cards, accounts, securities and companies."""

from typing import Final

from gatehouse.detection.validators.checksums import (
    DIGITS,
    all_same,
    compact,
    digits,
    letters_as_numbers,
    luhn,
    mod_11_check,
    mod_97,
    weighted,
)

#: The brands of cards: first prefix, last prefix, and possible numbers of digits.
_BRANDS: Final[tuple[tuple[str, str, frozenset[int]], ...]] = (
    ("4", "4", frozenset({13, 16, 19})),  # Visa
    ("51", "55", frozenset({16})),  # Mastercard
    ("2221", "2720", frozenset({16})),
    ("34", "34", frozenset({15})),  # American Express
    ("37", "37", frozenset({15})),
    ("300", "305", frozenset({14, 16})),  # Diners Club
    ("309", "309", frozenset({14, 16})),
    ("36", "36", frozenset({14, 16})),
    ("38", "39", frozenset({14, 16})),
    ("6011", "6011", frozenset({16, 19})),  # Discover
    ("622126", "622925", frozenset({16, 19})),
    ("644", "649", frozenset({16, 19})),
    ("65", "65", frozenset({16, 19})),
    ("35", "35", frozenset({16, 19})),  # JCB
    ("1800", "1800", frozenset({15})),
    ("2131", "2131", frozenset({15})),
    ("62", "62", frozenset({16, 17, 18, 19})),  # UnionPay
    ("2200", "2204", frozenset({16, 17, 18, 19})),  # Mir
    ("50", "50", frozenset(range(12, 20))),  # Maestro, Elo, Verve
    ("56", "58", frozenset(range(12, 20))),
    ("60", "60", frozenset({16})),  # RuPay
    ("63", "63", frozenset(range(12, 20))),
    ("0604", "0604", frozenset({12})),
    ("67", "67", frozenset(range(12, 20))),
    ("9792", "9792", frozenset({16})),  # Troy
    ("1", "1", frozenset({15})),  # UATP
)


_BY_FIRST_DIGIT: Final = {digit: [brand for brand in _BRANDS if brand[0][0] == digit] for digit in DIGITS}


def card(text: str) -> bool:
    """Check the Luhn digit, and that some brand issues cards with this prefix and length (ISO/IEC 7812)."""
    number = digits(text)
    return luhn(number) and any(
        len(number) in lengths and low <= number[: len(low)] <= high
        for low, high, lengths in _BY_FIRST_DIGIT[number[0]]
    )


#: Minimum digits of a distinctive card. Only old cards have 13 digits, while all article numbers and times in
#: milliseconds have 13.
_MIN_DISTINCTIVE_DIGITS: Final = 14
#: Maximum digits of a distinctive card. Longer cards are rare, while many ids have 17 to 19 digits.
_MAX_DISTINCTIVE_DIGITS: Final = 16
#: Prefixes of Maestro, which issues cards of all lengths. A tenth of all numbers have one of these prefixes, so such a
#: card is only distinctive if it has 16 digits.
_WIDE: Final = ("50", "56", "57", "58", "63", "67")


def distinctive_card(text: str) -> bool:
    """Return whether the number is a card whose prefix and length are so specific that a right Luhn digit proves it."""
    number = digits(text)
    return (
        _MIN_DISTINCTIVE_DIGITS <= len(number) <= _MAX_DISTINCTIVE_DIGITS
        and number[0] != "1"
        and (len(number) == _MAX_DISTINCTIVE_DIGITS or not number.startswith(_WIDE))
        and len(set(number)) > 1
        and card(text)
    )


def likely_card(text: str) -> bool | None:
    """Return True for a distinctive card, None for another possible card, whose check digit may be right by chance, and
    False for other numbers."""
    return card(text) and (distinctive_card(text) or None)


_IBANS: Final = (
    "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27 "
    "DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 HR:21 HU:28 "
    "IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 "
    "MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 "
    "SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20 YE:30"
)
#: Maps each country to the length of its IBANs.
IBAN_LENGTHS: Final = {entry[:2]: int(entry[3:]) for entry in _IBANS.split()}


def iban(text: str) -> bool:
    """Check the length for the country, and the check digits modulo 97 (ISO 13616)."""
    number = compact(text)
    return len(number) == IBAN_LENGTHS.get(number[:2]) and mod_97(number[4:] + number[:4])


def aba_routing(text: str) -> bool:
    """Check that the prefix is one of the Federal Reserve, and that the sum with the weights 3, 7, 1 is a multiple of
    ten."""
    number = digits(text)
    prefix = int(number[:2])
    known = 1 <= prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    return known and weighted(number, (3, 7, 1) * 3) % 10 == 0


_ISO_3166: Final = (
    "AD AE AF AG AI AL AM AO AR AT AU AW AZ BA BB BD BE BF BG BH BI BJ BM BN BO BR BS BT BW BY BZ CA CD CF CG CH CI CL "
    "CM CN CO CR CU CV CW CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FO FR GA GB GD GE GG GH GI GL GM GN GQ GR GT "
    "GY HK HN HR HT HU ID IE IL IM IN IQ IR IS IT JE JM JO JP KE KG KH KM KN KR KW KY KZ LA LB LC LI LK LR LS LT LU LV "
    "LY MA MC MD ME MG MK ML MM MN MO MR MT MU MV MW MX MY MZ NA NE NG NI NL NO NP NZ OM PA PE PG PH PK PL PS PT PY QA "
    "RO RS RU RW SA SB SC SD SE SG SI SK SL SM SN SO SR SS ST SV SY SZ TD TG TH TJ TL TM TN TO TR TT TW TZ UA UG US UY "
    "UZ VA VC VE VG VN VU WS XK YE ZA ZM ZW XS EU"
)
_COUNTRIES: Final = frozenset(_ISO_3166.split())


def swift(text: str) -> bool:
    """Check that the country code exists (ISO 9362)."""
    return text[4:6].upper() in _COUNTRIES


def isin(text: str) -> bool:
    """Check the country code, and the Luhn digit after letters are replaced by numbers (ISO 6166)."""
    return text[:2] in _COUNTRIES and luhn(letters_as_numbers(text))


def mostly_digits(text: str) -> bool | None:
    """Reject a text in which more than a few letters follow the country code. Most securities have few letters, while
    random codes have many."""
    return None if sum(map(str.isdigit, text)) > len(text) // 2 + 1 else False


def cusip(text: str) -> bool:
    total = 0
    for place, character in enumerate(text[:8]):
        value = int(character, 36) * (2 if place % 2 else 1)
        total += value // 10 + value % 10
    return str((10 - total % 10) % 10) == text[8]


def lei(text: str) -> bool:
    """Check the check digits of a legal entity identifier (ISO 17442)."""
    return mod_97(text)


def clabe(text: str) -> bool:
    """Check the check digit of a Mexican CLABE: the weights 3, 7, 1 over 17 digits, each product modulo 10."""
    total = sum(int(digit) * (3, 7, 1)[place % 3] % 10 for place, digit in enumerate(text[:17]))
    return (10 - total % 10) % 10 == int(text[17])


def abn(text: str) -> bool:
    """Check an Australian business number: after 1 is subtracted from the first digit, the weighted sum is a multiple
    of 89."""
    number = digits(text)
    return (
        number[0] != "0"
        and weighted(str(int(number[0]) - 1) + number[1:], (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)) % 89 == 0
    )


def acn(text: str) -> bool:
    number = digits(text)
    return (10 - weighted(number[:8], (8, 7, 6, 5, 4, 3, 2, 1)) % 10) % 10 == int(number[8])


def kr_business(text: str) -> bool:
    number = digits(text)
    total = weighted(number[:9], (1, 3, 7, 1, 3, 7, 1, 3, 5)) + int(number[8]) * 5 // 10
    return (10 - total % 10) % 10 == int(number[9])


def se_organization(text: str) -> bool:
    """Check the Luhn digit, and that the third digit is 2 or more. In the number of a person, the third digit is 0 or
    1."""
    number = digits(text)
    return number[2] >= "2" and luhn(number)


def br_cnpj(text: str) -> bool:
    number = digits(text)
    first = mod_11_check(number[:12], (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
    second = mod_11_check(number[:13], (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
    return not all_same(number) and [first if first < 10 else 0, second if second < 10 else 0] == [
        int(number[12]),
        int(number[13]),
    ]


def it_vat(text: str) -> bool:
    number = digits(text)
    return not all_same(number) and luhn(number)


def fr_vat(text: str) -> bool:
    """Check the key, the two characters before the SIREN. If the key is two digits, it is computed from the SIREN. A
    newer key that contains a letter is not checked."""
    number = compact(text)
    return not number[2:4].isdigit() or int(number[2:4]) == (12 + 3 * (int(number[4:]) % 97)) % 97


def de_vat(text: str) -> bool:
    """Check that the first digit is not 0. The check digit is not checked, because it is wrong in many printed
    numbers."""
    return digits(text)[0] != "0"


def sg_uen(text: str) -> bool:
    """Check the check letter of a Singaporean number that consists of digits and this letter. Numbers with other
    letters are not checked."""
    return not text[:9].isdigit() or "ZKCMDNERGWH"[weighted(text[:9], (10, 8, 6, 4, 9, 7, 5, 3, 1)) % 11] == text[9]


def gstin(text: str) -> bool:
    """Check the code of the state, the first two digits of an Indian GSTIN."""
    return 1 <= int(text[:2]) <= 37 or text[:2] in {"97", "99"}
