"""Validates addresses of cryptocurrencies: base58check (Bitcoin and related currencies, Tron, Ripple) and bech32
(BIP 173, BIP 350)."""

import hashlib
from typing import Final

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_RIPPLE: Final = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
_BECH32: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CHECK, _BECH32M_CHECK = 1, 0x2BC830A3


def base58(text: str) -> bool:
    """Check the checksum of base58check. Addresses of Ripple begin with `r` and use a different alphabet."""
    return _checked(text, _RIPPLE if text[0] == "r" else _BASE58)


def _checked(text: str, alphabet: str) -> bool:
    number = 0
    for character in text:
        place = alphabet.find(character)
        if place < 0:
            return False
        number = number * 58 + place
    zeros = len(text) - len(text.lstrip(alphabet[0]))
    data = b"\x00" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
    return len(data) == 25 and hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()[:4] == data[-4:]


def bech32(text: str) -> bool:
    if text != text.lower() and text != text.upper():
        return False
    human, separator, data = text.lower().rpartition("1")
    if not separator or any(character not in _BECH32 for character in data):
        return False
    values = [ord(character) >> 5 for character in human] + [0] + [ord(character) & 31 for character in human]
    values += [_BECH32.index(character) for character in data]
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate(_GENERATOR):
            check ^= generator if top >> place & 1 else 0
    return check in (_BECH32_CHECK, _BECH32M_CHECK)
