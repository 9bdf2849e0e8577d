"""Random credentials: API keys, client secrets, one-time tokens. Only their SHA-256 is ever stored (decisions 3).

They hold 190 bits or more of chance, so a plain digest is enough: nobody can try that many, and a lookup stays cheap.
"""

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass, field
from typing import Final

API_KEY_PREFIX: Final = "gk_"

_BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_CHARS: Final = 32
_CHECKSUM_CHARS: Final = 6
_SHOWN_CHARS: Final = 8
#: 43 characters of 62 are 256 bits.
_TOKEN_CHARS: Final = 43

_api_key = re.compile(rf"{API_KEY_PREFIX}[0-9A-Za-z]{{{_RANDOM_CHARS + _CHECKSUM_CHARS}}}").fullmatch


@dataclass(frozen=True, slots=True)
class Minted:
    """A new credential. `plaintext` is told once and not kept; `shown` is what listings show of it."""

    plaintext: str = field(repr=False)
    digest: bytes = field(repr=False)

    @property
    def shown(self) -> str:
        return self.plaintext[:_SHOWN_CHARS]


def mint_api_key() -> Minted:
    """`gk_`, 32 random characters, and a checksum that scanners for leaked secrets can verify offline."""
    body = API_KEY_PREFIX + _random(_RANDOM_CHARS)
    return _minted(body + _checksum(body))


def looks_like_api_key(text: str) -> bool:
    """Whether the form and the checksum fit: a typing error ends here, before any lookup."""
    return _api_key(text) is not None and _checksum(text[:-_CHECKSUM_CHARS]) == text[-_CHECKSUM_CHARS:]


def mint_token(prefix: str = "") -> Minted:
    """A secret or one-time token of 256 bits, with a prefix that tells what it is for (`inv_`, ...)."""
    return _minted(prefix + _random(_TOKEN_CHARS))


def digest(plaintext: str) -> bytes:
    """SHA-256, the form in which credentials are stored and looked up. Any text of any caller has one."""
    return hashlib.sha256(plaintext.encode("utf-8", "surrogatepass")).digest()


def _minted(plaintext: str) -> Minted:
    return Minted(plaintext, digest(plaintext))


def _random(characters: int) -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(characters))


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode("ascii"))
    characters = []
    for _ in range(_CHECKSUM_CHARS):
        value, rest = divmod(value, len(_BASE62))
        characters.append(_BASE62[rest])
    return "".join(reversed(characters))
