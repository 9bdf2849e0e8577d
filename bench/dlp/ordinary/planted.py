"""Generates sensitive values with right check digits, and the names that people use for them.

Check digits are not computed by the validators of the product, so that faults in the validators are detected.
"""

import string
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.dlp.ordinary.fields import Fields


class Planted(NamedTuple):
    """A sensitive value. A finding with any of `entity_types` is right. `names` are names of the value in prose, and
    `keys` are names of fields or variables."""

    label: str
    entity_types: tuple[str, ...]
    names: tuple[str, ...]
    keys: tuple[str, ...]
    make: Callable[[Fields], str]


def _luhn(number: str) -> str:
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return number + str(-total % 10)


def _weighted(number: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True))


def _card(f: Fields) -> str:
    prefix, length = f.random.choice((("4", 16), ("52", 16), ("37", 15), ("6011", 16), ("54", 16)))
    number = _luhn(prefix + "".join(f.random.choices(string.digits, k=length - 1 - len(prefix))))
    groups = (4, 6, 5) if length == 15 else (4, 4, 4, 4)
    separator = f.random.choice(("", " ", "-", " "))
    return _in_groups(number, groups, separator)


def _in_groups(number: str, groups: Sequence[int], separator: str) -> str:
    parts, start = [], 0
    for size in groups:
        parts.append(number[start : start + size])
        start += size
    return separator.join(parts)


def _iban(f: Fields) -> str:
    country, length, letters = f.random.choice(
        (
            ("DE", 22, 0),
            ("FR", 27, 0),
            ("ES", 24, 0),
            ("NL", 18, 4),
            ("PL", 28, 0),
            ("GB", 22, 4),
            ("TR", 26, 0),
            ("PT", 25, 0),
        )
    )
    body = f.characters(letters, string.ascii_uppercase) + "".join(
        f.random.choices(string.digits, k=length - 4 - letters)
    )
    numeric = "".join(str(int(character, 36)) for character in body + country + "00")
    whole = f"{country}{98 - int(numeric) % 97:02d}{body}"
    return " ".join(whole[i : i + 4] for i in range(0, length, 4)) if f.random.random() < 0.5 else whole


def _ssn(f: Fields) -> str:
    return f"{f.random.choice((*range(100, 666), *range(667, 900)))}-{f.random.randint(10, 99)}-{f.random.randint(1000, 9999)}"


def _nino(f: Fields) -> str:
    whole = f.random.choice(("AB", "CE", "HJ", "JK", "PW", "SR", "YZ")) + f.digits(6) + f.random.choice("ABCD")
    return f"{whole[:2]} {whole[2:4]} {whole[4:6]} {whole[6:8]} {whole[8]}" if f.random.random() < 0.5 else whole


def _nhs(f: Fields) -> str:
    while True:
        number = f.random.choice("4679") + f.digits(8)
        check = -_weighted(number, range(10, 1, -1)) % 11
        if check < 10:
            whole = number + str(check)
            return f"{whole[:3]} {whole[3:6]} {whole[6:]}" if f.random.random() < 0.6 else whole


def _date_yymmdd(f: Fields) -> str:
    return f"{f.random.randint(50, 99)}{f.random.randint(1, 12):02d}{f.random.randint(1, 28):02d}"


def _pesel(f: Fields) -> str:
    number = _date_yymmdd(f) + f.digits(4)
    return number + str(-_weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def _tckn(f: Fields) -> str:
    number = f.digits(9)
    tenth = (7 * sum(map(int, number[::2])) - sum(map(int, number[1::2]))) % 10
    return f"{number}{tenth}{(sum(map(int, number)) + tenth) % 10}"


def _dni(f: Fields) -> str:
    number = f.digits(8)
    return number + f.random.choice(("", "-")) + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def _bsn(f: Fields) -> str:
    while True:
        number = f.digits(8)
        check = _weighted(number, range(9, 1, -1)) % 11
        if check < 10:
            return number + str(check)


def _codice_fiscale(f: Fields) -> str:
    odd = dict(zip(string.digits + string.ascii_uppercase, (
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10,
        22, 25, 24, 23,
    ), strict=True))  # fmt: skip
    consonants = "BCDFGLMNPRSTV"
    body = (
        f.characters(6, consonants) + f"{f.random.randint(40, 99)}" + f.random.choice("ABCDEHLMPRST")
        + f"{f.random.randint(1, 28):02d}" + f.random.choice("AFHLG") + f.digits(3)
    )  # fmt: skip
    total = sum(
        odd[c] if place % 2 == 0 else int(c) if c.isdigit() else ord(c) - 65 for place, c in enumerate(body)
    )  # fmt: skip
    return body + chr(65 + total % 26)


def _steuer_id(f: Fields) -> str:
    while True:
        first = [str(f.random.randint(1, 9)), *f.random.sample(string.digits, 9)]
        number = "".join(first)
        counts = [number.count(digit) for digit in string.digits]
        if max(counts) == 2 and counts.count(2) == 1:
            break
    product = 10
    for digit in number:
        product = ((product + int(digit)) % 10 or 10) * 2 % 11
    whole = number + str((11 - product) % 10)
    return f"{whole[:2]} {whole[2:5]} {whole[5:8]} {whole[8:]}" if f.random.random() < 0.4 else whole


def _nir(f: Fields) -> str:
    number = f"{f.random.choice('12')}{f.random.randint(40, 99)}{f.random.randint(1, 12):02d}{f.random.randint(10, 95)}{f.digits(3)}{f.digits(3)}"
    key = f"{97 - int(number) % 97:02d}"
    if f.random.random() < 0.5:
        return f"{number[0]} {number[1:3]} {number[3:5]} {number[5:7]} {number[7:10]} {number[10:]} {key}"
    return number + key


def _nif_pt(f: Fields) -> str:
    number = f.random.choice("123") + f.digits(7)
    check = 11 - _weighted(number, range(9, 1, -1)) % 11
    return number + str(0 if check > 9 else check)


def _my_number(f: Fields) -> str:
    number = f.digits(11)
    rest = _weighted(number, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    whole = number + str(0 if rest <= 1 else 11 - rest)
    return f"{whole[:4]} {whole[4:8]} {whole[8:]}" if f.random.random() < 0.4 else whole


def _cpf(f: Fields) -> str:
    number = f.digits(9)
    for length in (10, 11):
        rest = 11 - _weighted(number, range(length, 1, -1)) % 11
        number += str(0 if rest > 9 else rest)
    return f"{number[:3]}.{number[3:6]}.{number[6:9]}-{number[9:]}" if f.random.random() < 0.6 else number


def _routing(f: Fields) -> str:
    number = f.random.choice(("0210", "1210", "0110", "0710", "3222")) + f.digits(4)
    return number + str(-_weighted(number, (3, 7, 1, 3, 7, 1, 3, 7)) % 10)


def _sin(f: Fields) -> str:
    whole = _luhn(f.random.choice("1234567") + f.digits(7))
    return f"{whole[:3]} {whole[3:6]} {whole[6:]}" if f.random.random() < 0.6 else whole


def _npi(f: Fields) -> str:
    number = f.random.choice("12") + f.digits(8)
    return _luhn("80840" + number)[5:]


def _password(f: Fields) -> str:
    words = ("Winter", "lagoon", "Tiger", "orbit", "Pepper", "castle", "Mango", "violet")
    return f.random.choice(words) + f.random.choice("!#%+?&") + f.digits(3) + f.random.choice(words)[:3]


def _aws(f: Fields) -> str:
    return "AKIA" + f.characters(16, string.ascii_uppercase + "234567")


def _github(f: Fields) -> str:
    return "ghp_" + f.characters(36)


def _stripe(f: Fields) -> str:
    return "sk_" + "live_" + f.characters(24)


def _key(f: Fields) -> str:
    return f.characters(32)


def _birth(f: Fields) -> str:
    day, month, year = f.random.randint(1, 28), f.random.randint(1, 12), f.random.randint(1940, 2004)
    return f.random.choice(
        (f"{year}-{month:02d}-{day:02d}", f"{day:02d}.{month:02d}.{year}", f"{day:02d}/{month:02d}/{year}")
    )


def _passport(f: Fields) -> str:
    return f.random.choice(
        (f.random.choice("ACXK") + f.digits(8), "C" + f.characters(8, "0123456789FGHJKLMNPRT"), f.digits(9))
    )


PLANTED: Final = (
    Planted("credit_card", ("credit_card",), ("card", "credit card", "Kreditkarte", "carte bancaire", "tarjeta"), ("card_number", "cc", "pan"), _card),
    Planted("iban", ("iban",), ("IBAN", "account", "Konto", "compte"), ("iban", "account"), _iban),
    Planted("ssn", ("ssn",), ("SSN", "social security number"), ("ssn", "social_security_number"), _ssn),
    Planted("uk_nino", ("uk_nino",), ("NI number", "national insurance number"), ("nino", "ni_number"), _nino),
    Planted("uk_nhs", ("uk_nhs",), ("NHS number", "NHS no."), ("nhs_number", "nhs"), _nhs),
    Planted("pl_pesel", ("national_id",), ("PESEL", "numer PESEL"), ("pesel", "pesel_number"), _pesel),
    Planted("tr_national_id", ("national_id",), ("TC kimlik no", "TCKN"), ("tckn", "tc_kimlik_no"), _tckn),
    Planted("es_nif", ("national_id",), ("DNI", "NIF"), ("dni", "nif"), _dni),
    Planted("nl_bsn", ("national_id",), ("BSN", "burgerservicenummer"), ("bsn", "burgerservicenummer"), _bsn),
    Planted("it_fiscal_code", ("national_id",), ("codice fiscale", "C.F."), ("codice_fiscale", "cf"), _codice_fiscale),
    Planted("de_tax_id", ("tax_id",), ("Steuer-ID", "Steueridentifikationsnummer", "IdNr."), ("steuer_id", "tax_id"), _steuer_id),
    Planted("fr_nir", ("national_id",), ("numéro de sécurité sociale", "NIR"), ("nir", "num_secu"), _nir),
    Planted("pt_nif", ("tax_id", "national_id"), ("NIF", "contribuinte"), ("nif", "contribuinte"), _nif_pt),
    Planted("jp_my_number", ("national_id",), ("マイナンバー", "個人番号"), ("my_number", "kojin_bango"), _my_number),
    Planted("br_cpf", ("national_id",), ("CPF",), ("cpf", "cpf_number"), _cpf),
    Planted("us_routing_number", ("us_routing_number",), ("routing number", "ABA routing"), ("routing_number", "aba"), _routing),
    Planted("ca_sin", ("ca_sin",), ("SIN", "social insurance number"), ("sin", "social_insurance_number"), _sin),
    Planted("us_npi", ("us_npi",), ("NPI", "provider NPI"), ("npi", "provider_npi"), _npi),
    Planted("passport", ("passport",), ("passport number", "Reisepass", "pasaporte", "passeport", "paszport"), ("passport", "passport_number"), _passport),
    Planted("date_of_birth", ("date_of_birth",), ("born", "geboren am", "né le", "fecha de nacimiento", "DOB"), ("dob", "date_of_birth", "birthdate"), _birth),
    Planted("password", ("password", "stored_credential", "api_key"), ("password", "Passwort", "mot de passe", "contraseña", "hasło"), ("password", "db_password", "DB_PASS"), _password),
    Planted("aws_access_key", ("aws_access_key",), ("key", "access key"), ("aws_access_key_id", "key"), _aws),
    Planted("github_token", ("github_token",), ("token", "PAT"), ("github_token", "GH_TOKEN"), _github),
    Planted("stripe_key", ("stripe_key",), ("key", "Stripe key"), ("stripe_key", "STRIPE_SECRET"), _stripe),
    Planted("api_key", ("api_key", "authorization_header", "password"), ("API key", "api key"), ("api_key", "API_KEY", "apiKey"), _key),
)  # fmt: skip
