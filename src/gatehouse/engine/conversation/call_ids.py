"""Ids of tool calls, for providers that do not take every other one's: a conversation may have begun elsewhere."""

import hashlib
import re
from string import ascii_letters, digits
from typing import Final

_ALPHABET: Final = digits + ascii_letters


def fitting(call_id: str, allowed: re.Pattern[str], length: int) -> str:
    """The id where the whole of it is allowed, else letters and digits of this length, 40 at most: the same for a call
    and for its result."""
    if allowed.fullmatch(call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode(errors="surrogatepass")).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)
