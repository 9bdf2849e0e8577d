"""Random credentials: API keys, client secrets, one-time tokens. Only their SHA-256 is stored.

A credential has at least 190 random bits, so it cannot be guessed from its plain digest. A plain digest makes look-ups
cheap.
"""

import hashlib
import secrets
import string
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

API_KEY_PREFIX: Final = "gk_"

_BASE62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_CHARACTERS: Final = 32
_CHECKSUM_CHARACTERS: Final = 6
_SHOWN_CHARACTERS: Final = 8
#: 43 characters of an alphabet of 62 have 256 bits
_TOKEN_CHARACTERS: Final = 43


@dataclass(frozen=True, slots=True)
class Minted:
    """A new credential. `plaintext` is shown to its owner once and is not stored. `shown` is its prefix, which lists
    show."""

    plaintext: str = field(repr=False)
    digest: bytes = field(repr=False)

    @property
    def shown(self) -> str:
        return self.plaintext[:_SHOWN_CHARACTERS]


def mint_api_key() -> Minted:
    """Returns a new API key: `gk_`, 32 random characters, and a checksum that secret scanners can verify offline."""
    body = API_KEY_PREFIX + _random(_RANDOM_CHARACTERS)
    return _minted(body + _checksum(body))


def mint_token(prefix: str = "") -> Minted:
    """Returns a secret or one-time token of 256 bits, with a prefix for its purpose (`inv_`, ...)."""
    return _minted(prefix + _random(_TOKEN_CHARACTERS))


def digest(plaintext: str) -> bytes:
    """Returns the SHA-256 by which credentials are stored and looked up. Accepts any text."""
    return hashlib.sha256(plaintext.encode("utf-8", "surrogatepass")).digest()


def _minted(plaintext: str) -> Minted:
    return Minted(plaintext, digest(plaintext))


def _random(characters: int) -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(characters))


def _checksum(body: str) -> str:
    value = zlib.crc32(body.encode("ascii"))
    characters = []
    for _ in range(_CHECKSUM_CHARACTERS):
        value, digit = divmod(value, len(_BASE62))
        characters.append(_BASE62[digit])
    return "".join(reversed(characters))


def bearer_token(headers: Mapping[str, str]) -> str:
    """Returns the bearer token of a request, or an empty text if there is none. `headers` has lower-case names."""
    authorization = headers.get("authorization", "")
    return authorization[7:].strip() if authorization[:7].lower() == "bearer " else ""
