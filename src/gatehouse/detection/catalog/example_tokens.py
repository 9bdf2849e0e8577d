"""Generates tokens for the examples of the patterns. The tokens are not written in the source, because secret scanners
would report this repository."""

import hashlib
import string
from typing import Final

BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
BASE36_LOWER: Final = string.digits + string.ascii_lowercase
BASE36_UPPER: Final = string.digits + string.ascii_uppercase
HEX: Final = "0123456789abcdef"


def random_characters(length: int, alphabet: str = BASE62, seed: str = "gatehouse") -> str:
    """Return `length` characters of `alphabet` that look random. Equal arguments give equal results."""
    characters: list[str] = []
    block = seed.encode()
    while len(characters) < length:
        block = hashlib.sha256(block).digest()
        characters += [alphabet[byte % len(alphabet)] for byte in block]
    return "".join(characters[:length])
