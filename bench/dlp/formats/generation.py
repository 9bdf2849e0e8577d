"""Defines `Format`, one way to write a kind of value (for example a phone number), and generates test texts."""

import re
import string
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple, TypeAlias

ValueGenerator: TypeAlias = Callable[[Random], str]

#: Alphabets by their letter in templates. `w` are the characters of URL-safe base64, `e` those of lower-case tokens with
#: padding, `b` those of base64, and `B` those of base32.
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
_PLACEHOLDER: Final = re.compile(r"\{(\w):(\d+)(?:-(\d+))?\}")
_UUID: Final = "{h:8}-{h:4}-4{h:3}-a{h:3}-{h:12}"


class Format(NamedTuple):
    """One way to write a kind of value. A finding is correct if its entity type or category is in `expected`.
    `contexts` contains sentences in which `{}` is replaced with the value."""

    family: str
    name: str
    value: ValueGenerator
    expected: frozenset[str]
    contexts: tuple[str, ...]


class Case(NamedTuple):
    text: str
    start: int
    end: int


def from_template(template: str) -> ValueGenerator:
    """Return a function that generates values of a template. `{h:8}` is eight characters of the alphabet `h`,
    `{n:20-40}` is 20 to 40 characters of the alphabet `n`, and `{uuid}` is a UUID."""
    template_with_uuid = template.replace("{uuid}", _UUID)

    def value(rnd: Random) -> str:
        def random_characters(match: re.Match[str]) -> str:
            least, most = int(match[2]), int(match[3] or match[2])
            return "".join(rnd.choices(ALPHABETS[match[1]], k=rnd.randint(least, most)))

        return _PLACEHOLDER.sub(random_characters, template_with_uuid)

    return value


def one_of(*values: ValueGenerator) -> ValueGenerator:
    return lambda rnd: rnd.choice(values)(rnd)


def cases(value_format: Format, cases_per_context: int, seed: int = 0) -> Iterator[Case]:
    """Yield `cases_per_context` texts for each sentence in `contexts`."""
    rnd = Random(f"{value_format.family} {value_format.name} {seed}")
    for context in value_format.contexts:
        for _ in range(cases_per_context):
            value = value_format.value(rnd)
            before, _, after = context.partition("{}")
            yield Case(before + value + after, len(before), len(before) + len(value))
