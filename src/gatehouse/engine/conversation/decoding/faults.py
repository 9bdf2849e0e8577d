"""Converts the decoder's errors about fields to messages for the client."""

import re
from typing import Final

from gatehouse.engine.conversation.errors import InvalidField

_TYPES: Final = {
    "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null",
}  # fmt: skip
_UNITS: Final = {"str": ("characters", "character"), "array": ("entries", "entry"), "object": ("fields", "field")}
_TYPE: Final = re.compile(r"Expected `([a-z| ]+)`, got `([a-z]+)`")
_LENGTH: Final = re.compile(r"Expected `(str|array|object)` of length (>=|<=) ([0-9]+)")
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) ([-0-9.e]+)")
_BOUND_WORDS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def invalid_field(sentence: str) -> InvalidField:
    """Return the error for a message of the decoder: "Expected `str`, got `int` - at `$.messages[0].role`"."""
    message, _, location = sentence.partition(" - at ")
    path = location.strip("`").removeprefix("$").removeprefix(".")
    if message.startswith("Object missing required field"):
        field = message.split("`")[1]
        path = f"{path}.{field}" if path else field
        return InvalidField(path, f"`{path}` is required.")
    path = path or "body"
    return InvalidField(path, f"`{path}` {_requirement(message)}.")


def _requirement(message: str) -> str:
    if match := _TYPE.match(message):
        # A field that may be null may be omitted; null means the same.
        kinds = [kind for kind in match[1].split(" | ") if kind != "null"]
        actual = _TYPES.get(match[2], match[2])
        return f"must be {_alternatives(kinds)}, not {actual}"
    if match := _LENGTH.match(message):
        units = _UNITS[match[1]]
        return f"must have {_BOUND_WORDS[match[2]]} {match[3]} {units[match[3] == '1']}"
    if match := _BOUND.match(message):
        return f"must be {_BOUND_WORDS[match[1]]} {match[2]}"
    if message.startswith("Invalid enum value"):
        return "is not one of the values that this field takes"
    return "is not valid"


def _alternatives(kinds: list[str]) -> str:
    # Integers are numbers, so the type `number` includes them.
    names = [_TYPES.get(kind, kind) for kind in kinds if not (kind == "int" and "float" in kinds)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
