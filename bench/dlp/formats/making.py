"""Defines `Format`, a format of values, and generates values of a format."""

import re
import string
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = Callable[[Random], str]

ALPHABETS: Final = {
    "d": string.digits,
    "h": "0123456789abcdef",
    "H": "0123456789abcdefABCDEF",
    "X": "0123456789ABCDEF",
    "l": string.ascii_lowercase,
    "L": string.ascii_uppercase,
    "a": string.digits + string.ascii_lowercase,
    "A": string.digits + string.ascii_uppercase,
    "n": string.digits + string.ascii_letters,
    "c": string.ascii_letters,
    "w": string.digits + string.ascii_letters + "_-",
    "e": string.digits + string.ascii_lowercase + "=_-",
    "b": string.digits + string.ascii_letters + "+/",
    "B": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "1": "123456789",
}
_PLACE: Final = re.compile(r"\{(\w):(\d+)(?:-(\d+))?\}")
_UUID: Final = "{h:8}-{h:4}-4{h:3}-a{h:3}-{h:12}"


class Format(NamedTuple):
    """A format of values. A finding is correct if its entity type or category is in `expected`. `around` are texts with
    `{}` for the value."""

    family: str
    name: str
    value: Value
    expected: frozenset[str]
    around: tuple[str, ...]


class Case(NamedTuple):
    text: str
    start: int
    end: int


def from_template(template: str) -> Value:
    """Return a function that makes values of a template. `{h:8}` is eight characters of the alphabet `h`,
    `{n:20-40}` is 20 to 40 characters of the alphabet `n`, and `{uuid}` is a UUID."""
    written = template.replace("{uuid}", _UUID)

    def value(rnd: Random) -> str:
        def some(match: re.Match[str]) -> str:
            least, most = int(match[2]), int(match[3] or match[2])
            return "".join(rnd.choices(ALPHABETS[match[1]], k=rnd.randint(least, most)))

        return _PLACE.sub(some, written)

    return value


def one_of(*values: Value) -> Value:
    return lambda rnd: rnd.choice(values)(rnd)


def cases(value_format: Format, cases_each: int, seed: int = 0) -> Iterator[Case]:
    """Yield `cases_each` texts for each surrounding."""
    rnd = Random(f"{value_format.family} {value_format.name} {seed}")
    for around in value_format.around:
        for _ in range(cases_each):
            value = value_format.value(rnd)
            before, _, behind = around.partition("{}")
            yield Case(before + value + behind, len(before), len(before) + len(value))
