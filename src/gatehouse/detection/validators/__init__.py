"""What a match must be beside looking like it: check digits, structure, plausibility.

Each module has plain predicates `(text) -> bool` that see the match as written, separators included. A pattern takes
them by one of three names, which say how much a right and a wrong check digit prove:

- `proves`: right means found, wrong means not (a card's Luhn digit over known prefixes, IBAN's mod 97).
- `refutes`: wrong means not found, right proves little (one digit of ten is right by chance).
- `supports`: right means found, wrong proves nothing (issuers that dropped the digit, specimens without it).
"""

from collections.abc import Callable

from gatehouse.detection.pattern import Validator


def proves(check: Callable[[str], bool]) -> Validator:
    return check


def refutes(check: Callable[[str], bool]) -> Validator:
    def verdict(text: str) -> bool | None:
        return None if check(text) else False

    return verdict


def supports(check: Callable[[str], bool]) -> Validator:
    def verdict(text: str) -> bool | None:
        return True if check(text) else None

    return verdict


def both(*checks: Validator) -> Validator:
    """The first False decides, else the first True."""

    def verdict(text: str) -> bool | None:
        verdicts = [check(text) for check in checks]
        return False if False in verdicts else True if True in verdicts else None

    return verdict


def undecided(text: str) -> None:
    """Cannot tell."""
