"""Checks the text that the regex of a pattern matched: its check digits, structure and plausibility.

Each module has predicates `(text) -> bool`. A predicate is called with the matched text, including separators. A
pattern wraps a predicate in one of three functions, which define how its result is used:

- `proves`: True confirms the finding, and False rejects it. For checks that are right by chance in few cases, such as
  the modulo 97 of an IBAN.
- `refutes`: False rejects the finding, and True does not change it. For checks that are right by chance in many cases,
  such as one check digit, which is right in one of ten numbers.
- `supports`: True confirms the finding, and False does not change it. For check digits that some issuers leave out.
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
    """Return a validator that combines checks. It rejects the text if one of them rejects it. Otherwise it confirms the
    text if one of them confirms it."""

    def verdict(text: str) -> bool | None:
        verdicts = [check(text) for check in checks]
        return False if False in verdicts else True if True in verdicts else None

    return verdict


def undecided(text: str) -> None:
    """A check that neither confirms nor rejects."""
