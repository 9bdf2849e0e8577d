"""Verifies the form of API keys offline, as secret scanners do."""

import re
import string
import zlib

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def looks_like_api_key(text: str) -> bool:
    """Return whether a text is `gk_`, 32 characters, and six base-62 digits with the CRC-32 of the text before them."""
    if re.fullmatch(r"gk_[0-9A-Za-z]{38}", text) is None:
        return False
    value = 0
    for digit in text[-6:]:
        value = value * 62 + _BASE62.index(digit)
    return value == zlib.crc32(text[:-6].encode("ascii"))
