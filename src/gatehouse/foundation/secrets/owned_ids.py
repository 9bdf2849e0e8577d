"""Ids of objects that a provider keeps, bound to their owner by a MAC. So no table of owners is needed.

An id of a response has the form `resp_<base64url of MAC and content>`; its content identifies the provider, the model
and the provider's id. An id of a container has the same form after `cntr_gw_`. An id of an item is the provider's id
with the MAC at its end. An id of a session at an MCP server is the MAC, a dot, and the server's id.
"""

import binascii
import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.foundation.secrets.sealing import MasterKeys

_PREFIX: Final = "resp_"
CONTAINER_PREFIX: Final = "cntr_gw_"
_MAC_BYTES: Final = 16
#: the MAC of an item has to fit into 64 characters together with the provider's id
_ITEM_MAC_BYTES: Final = 9
_MAX_ID_CHARACTERS: Final = 2048
_SESSION: Final = re.compile(r"([A-Za-z0-9_-]{22})\.([!-~]+)\Z")
_ITEM: Final = re.compile(r"(.+)-gw([A-Za-z0-9_-]{12})\Z")


class KeptObject(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An object that a provider keeps. `provider` and `model` are those of the catalog, `id` is the provider's."""

    provider: str
    model: str
    id: str


_content: msgspec.json.Decoder[KeptObject] = msgspec.json.Decoder(KeptObject)


class OwnedIds:
    """Makes and reads ids. `keys` are secrets of 32 bytes that all processes share: the first one makes ids, and ids of
    all of them are read."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = [hashlib.sha256(b"gatehouse ids of kept objects" + key).digest() for key in keys]

    @classmethod
    def of_master_keys(cls, master_keys: MasterKeys) -> "OwnedIds":
        """Return the ids of a host with these master keys. The current key makes ids."""
        current = master_keys.keys[master_keys.current]
        return cls([current, *(key for key in master_keys.keys.values() if key != current)])

    def response_id(self, owner: bytes, kept: KeptObject) -> str:
        return self._public_id(_PREFIX, b"response", owner, kept)

    def read_response_id(self, owner: bytes, public_id: str) -> KeptObject | None:
        """Return the response, or None for any other text and for an id of another owner."""
        return self._kept(_PREFIX, b"response", owner, public_id)

    def container_id(self, owner: bytes, kept: KeptObject) -> str:
        return self._public_id(CONTAINER_PREFIX, b"container", owner, kept)

    def read_container_id(self, owner: bytes, public_id: str) -> KeptObject | None:
        """Return the container, or None for any other text and for an id of another owner."""
        return self._kept(CONTAINER_PREFIX, b"container", owner, public_id)

    def _public_id(self, prefix: str, purpose: bytes, owner: bytes, kept: KeptObject) -> str:
        content = msgspec.json.encode(kept)
        mac = _mac(self._keys[0], purpose, owner, content, _MAC_BYTES)
        return prefix + urlsafe_b64encode(mac + content).decode().rstrip("=")

    def _kept(self, prefix: str, purpose: bytes, owner: bytes, public_id: str) -> KeptObject | None:
        raw = _raw(public_id, prefix)
        if raw is None:
            return None
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        return _content.decode(content) if self._is_valid(mac, purpose, owner, content) else None

    def item_id(self, owner: bytes, upstream_id: str) -> str:
        mac = _mac(self._keys[0], b"item", owner, upstream_id.encode(), _ITEM_MAC_BYTES)
        return f"{upstream_id}-gw{urlsafe_b64encode(mac).decode()}"

    def read_item_id(self, owner: bytes, public_id: str) -> str | None:
        """Return the provider's id of an item, or None for any other text and for an id of another owner."""
        match = _ITEM.match(public_id) if len(public_id) <= _MAX_ID_CHARACTERS else None
        if match is None:
            return None
        valid = self._is_valid(urlsafe_b64decode(match[2]), b"item", owner, match[1].encode(errors="surrogatepass"))
        return match[1] if valid else None

    def session_id(self, owner: bytes, upstream_id: str) -> str:
        """Return the id of a session for its owner. `upstream_id` is visible ASCII."""
        mac = _mac(self._keys[0], b"session", owner, upstream_id.encode(), _MAC_BYTES)
        return f"{urlsafe_b64encode(mac).decode().rstrip('=')}.{upstream_id}"

    def read_session_id(self, owner: bytes, public_id: str) -> str | None:
        """Return the server's id of a session, or None for any other text and for an id of another owner."""
        match = _SESSION.match(public_id) if len(public_id) <= _MAX_ID_CHARACTERS else None
        if match is None:
            return None
        valid = self._is_valid(urlsafe_b64decode(match[1] + "=="), b"session", owner, match[2].encode())
        return match[2] if valid else None

    def _is_valid(self, mac: bytes, purpose: bytes, owner: bytes, content: bytes) -> bool:
        return any(hmac.compare_digest(mac, _mac(key, purpose, owner, content, len(mac))) for key in self._keys)


def unverified_response(public_id: str) -> KeptObject | None:
    """Return the response that an id names, before its owner is checked, or None for any other text."""
    raw = _raw(public_id, _PREFIX)
    try:
        return None if raw is None else _content.decode(raw[_MAC_BYTES:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def has_item_form(public_id: str) -> bool:
    """Return whether a text has the form of an item's id, of any owner."""
    return len(public_id) <= _MAX_ID_CHARACTERS and _ITEM.match(public_id) is not None


def has_container_form(public_id: str) -> bool:
    """Return whether a text has the form of a container's id, of any owner."""
    return public_id.startswith(CONTAINER_PREFIX)


def _raw(public_id: str, prefix: str) -> bytes | None:
    if len(public_id) > _MAX_ID_CHARACTERS or not public_id.startswith(prefix) or not public_id.isascii():
        return None
    encoded = public_id[len(prefix) :].encode()
    try:
        raw = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) > _MAC_BYTES else None


def _mac(key: bytes, purpose: bytes, owner: bytes, content: bytes, size: int) -> bytes:
    # The lengths mark the ends, so that no other owner and content have the same bytes.
    message = b"%b:%d:%b" % (purpose, len(owner), owner) + content
    return hmac.digest(key, message, "sha256")[:size]
