"""Checks of text that a pattern's regex matched: check digits, structure, plausibility.

Each module has predicates `(text) -> bool`, called with the matched text, separators included. A pattern wraps a
predicate in one of three functions, which say what its result means:

- `proves`: true confirms the finding, false rejects it (a card's Luhn digit after known prefixes, IBAN's mod 97).
- `refutes`: false rejects the finding, true says nothing (one number of ten has the right digit by chance).
- `supports`: true confirms the finding, false says nothing (some issuers leave the digit out).
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
    """Combine checks. Rejects if one of them rejects, else confirms if one confirms."""

    def verdict(text: str) -> bool | None:
        verdicts = [check(text) for check in checks]
        return False if False in verdicts else True if True in verdicts else None

    return verdict


def undecided(text: str) -> None:
    """A check that neither confirms nor rejects."""
