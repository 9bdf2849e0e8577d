"""Secrets and message contents at rest: AES-256-GCM under the master key, with key ids so that keys can be rotated.

A sealed text reads `v1.<key id>.<base64url of nonce and ciphertext>`. Its context (tenant, table, row) is authenticated
with it: a sealed text copied into another row opens no more than a forged one. Nonces are random, which is safe for
2**32 texts a key; rotate before.
"""

import binascii
import hashlib
import os
import re
import secrets
import tempfile
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NewType

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gatehouse.foundation.settings import BadSettings, CommonSettings

#: Made by `Sealer.seal` alone.
SealedText = NewType("SealedText", str)

_VERSION: Final = "v1"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_KEY_FILE: Final = "master.key"
#: in a sealed text
_DOTS: Final = 2
_MAKE_ONE: Final = "python3 -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"


class CannotOpen(Exception):
    """A sealed text that does not open. The message never holds any of it."""


class UnknownSealingKey(CannotOpen):
    """It was sealed under a key that GATEHOUSE_MASTER_KEY no longer, or not yet, holds."""


class Tampered(CannotOpen):
    """It was changed, belongs to another context, or the key of this id is another one."""


@dataclass(frozen=True)
class MasterKeys:
    """`keys` by id, 32 bytes each; new texts are sealed under `current`."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)


class Sealer:
    """Seals under the current key and opens under any known one."""

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if current not in keys:
            raise ValueError("the current key is not among the keys")
        if any(len(key) != _KEY_BYTES for key in keys.values()) or not all(map(_KEY_ID.fullmatch, keys)):
            raise ValueError("keys have 32 bytes, ids up to 32 letters, digits, - and _")
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self.current = current

    def seal(self, plaintext: bytes, *, context: bytes) -> SealedText:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self.current].encrypt(nonce, plaintext, _bound(self.current, context))
        return SealedText(f"{_VERSION}.{self.current}.{urlsafe_b64encode(nonce + sealed).decode()}")

    def open(self, sealed: str, *, context: bytes) -> bytes:
        """Raises `UnknownSealingKey`, `Tampered`."""
        key_id, raw = _parts(sealed)
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise UnknownSealingKey(f"No master key has the id {key_id}.")
        try:
            return cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _bound(key_id, context))
        except InvalidTag:
            raise Tampered("The sealed text was changed, or belongs elsewhere.") from None

    def reseal(self, sealed: str, *, context: bytes) -> SealedText:
        """The same content under the current key; a text that is under it already comes back as it is."""
        if self.is_current(sealed):
            return SealedText(sealed)
        return self.seal(self.open(sealed, context=context), context=context)

    def is_current(self, sealed: str) -> bool:
        return sealed.startswith(f"{_VERSION}.{self.current}.")


def check_opens(sealer: Sealer, sealed: str, context: bytes) -> None:
    """Raises `BadSettings` where the master key does not open what a database holds."""
    try:
        sealer.open(sealed, context=context)
    except CannotOpen:
        key_id = sealed.split(".")[1] if sealed.count(".") == _DOTS else "unknown"
        raise BadSettings(
            "GATEHOUSE_MASTER_KEY: it does not open what is sealed in the database;"
            f" set the key that sealed it, which has the id {key_id}"
        ) from None


def _bound(key_id: str, context: bytes) -> bytes:
    return f"{_VERSION}.{key_id}.".encode() + context


def _parts(sealed: str) -> tuple[str, bytes]:
    version, _, rest = sealed.partition(".")
    key_id, _, encoded = rest.partition(".")
    if version != _VERSION or not _KEY_ID.fullmatch(key_id):
        raise Tampered("This is not a sealed text.")
    try:
        raw = b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:  # binascii.Error and UnicodeEncodeError are both
        raise Tampered("This is not a sealed text.") from None
    if len(raw) < _NONCE_BYTES + _TAG_BYTES:
        raise Tampered("The sealed text is cut short.")
    return key_id, raw


def load_master_keys(settings: CommonSettings) -> MasterKeys:
    """GATEHOUSE_MASTER_KEY: `id:base64` pairs separated by commas, the first current; or one bare base64 value.

    Embedded and without it, the key is read from `master.key` in the deployable's home, and made there at first start.
    Raises `BadSettings`, also when a real database is configured without a key: a key made beside the process would be
    lost with its disk, and every sealed secret with it.
    """
    if settings.gatehouse_master_key is not None:
        return parse_master_keys(settings.gatehouse_master_key.get_secret_value())
    if not settings.embedded:
        raise BadSettings(
            f"GATEHOUSE_MASTER_KEY: needed with {settings.database_variable}; it seals the secrets in the database. "
            f"Make one, keep it safe and give the same to every process: {_MAKE_ONE}"
        )
    return parse_master_keys(_own_key(settings.home))


def parse_master_keys(text: str) -> MasterKeys:
    """Raises `BadSettings`; the message never holds a key."""
    keys: dict[str, bytes] = {}
    for part in text.split(","):
        named, colon, encoded = part.strip().rpartition(":")
        key = _decoded(encoded)
        key_id = named if colon else hashlib.sha256(b"gatehouse master key id" + key).hexdigest()[:8]
        if not _KEY_ID.fullmatch(key_id):
            raise BadSettings("GATEHOUSE_MASTER_KEY: a key id has up to 32 letters, digits, - and _.")
        if key_id in keys:
            raise BadSettings(f"GATEHOUSE_MASTER_KEY: two keys have the id {key_id}.")
        keys[key_id] = key
    return MasterKeys(next(iter(keys)), keys)


def _decoded(encoded: str) -> bytes:
    try:
        key = b64decode(encoded.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise BadSettings(f"GATEHOUSE_MASTER_KEY: a key is 32 bytes in base64. Make one: {_MAKE_ONE}")
    return key


def _own_key(home: Path) -> str:
    path = home / _KEY_FILE
    try:
        if path.stat().st_mode & 0o077:
            raise BadSettings(f"{path} can be read by others: chmod 600 {path}")
    except FileNotFoundError:
        _make_key(path)
    return path.read_text("ascii").strip()


def _make_key(path: Path) -> None:
    """Several processes may start at once: each writes a file of its own, whole, and the first to link it wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, own = tempfile.mkstemp(dir=path.parent, prefix=".master-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b64encode(secrets.token_bytes(_KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(own, path)
        except FileExistsError:
            return
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        Path(own).unlink()
