"""Converts ids of tool calls for providers that do not accept other providers' ids."""

import hashlib
import re
from string import ascii_letters, digits
from typing import Final

_ALPHABET: Final = digits + ascii_letters


def accepted_id(call_id: str, allowed: re.Pattern[str], length: int) -> str:
    """Return the id if it matches `allowed`, else a hash of it in `length` letters and digits, at most 40. A call and
    its result get the same id."""
    if allowed.fullmatch(call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode(errors="surrogatepass")).digest(), "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)
