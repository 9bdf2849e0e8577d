"""Encrypts secrets and message contents at rest with AES-256-GCM under the master key. Key ids allow rotation.

A sealed text has the form `v1.<key id>.<base64url of nonce and ciphertext>`. Its context (tenant, table, row) is
authenticated, so a sealed text that is copied into another row cannot be opened. Nonces are random, which is safe for
2**32 texts with one key. Rotate the key before that number is reached.
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

#: created only by `Sealer.seal`
SealedText = NewType("SealedText", str)

_VERSION: Final = "v1"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_KEY_FILE: Final = "master.key"
#: number of dots in a sealed text
_DOTS: Final = 2
_KEY_COMMAND: Final = "python3 -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"


class CannotOpen(Exception):
    """A sealed text cannot be opened. The message contains no part of the text."""


class UnknownSealingKey(CannotOpen):
    """GATEHOUSE_MASTER_KEY does not contain the key of the sealed text."""


class Tampered(CannotOpen):
    """The sealed text was changed, belongs to another context, or was sealed under a different key with the same id."""


@dataclass(frozen=True)
class MasterKeys:
    """The master keys by id. Each has 32 bytes. New texts are sealed under the key with the id `current`."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)


class Sealer:
    """Seals texts under the current key, and opens texts that were sealed under any of the keys."""

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if current not in keys:
            raise ValueError("the current key is not among the keys")
        if any(len(key) != _KEY_BYTES for key in keys.values()) or not all(map(_KEY_ID.fullmatch, keys)):
            raise ValueError("keys have 32 bytes, ids up to 32 letters, digits, - and _")
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self.current = current

    def seal(self, plaintext: bytes, *, context: bytes) -> SealedText:
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self.current].encrypt(nonce, plaintext, _associated_data(self.current, context))
        return SealedText(f"{_VERSION}.{self.current}.{urlsafe_b64encode(nonce + sealed).decode()}")

    def open(self, sealed: str, *, context: bytes) -> bytes:
        """Returns the plaintext. Raises `UnknownSealingKey`, `Tampered`."""
        key_id, raw = _parts(sealed)
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise UnknownSealingKey(f"No master key has the id {key_id}.")
        try:
            return cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _associated_data(key_id, context))
        except InvalidTag:
            raise Tampered("The sealed text was changed, or belongs to another context.") from None

    def reseal(self, sealed: str, *, context: bytes) -> SealedText:
        """Returns the text sealed under the current key. A text that is already sealed under this key is not
        changed."""
        if self.is_current(sealed):
            return SealedText(sealed)
        return self.seal(self.open(sealed, context=context), context=context)

    def is_current(self, sealed: str) -> bool:
        return sealed.startswith(f"{_VERSION}.{self.current}.")


def check_opens(sealer: Sealer, sealed: str, context: bytes) -> None:
    """Raises `BadSettings` if the master key does not open a sealed text of the database."""
    try:
        sealer.open(sealed, context=context)
    except CannotOpen:
        key_id = sealed.split(".")[1] if sealed.count(".") == _DOTS else "unknown"
        raise BadSettings(
            "GATEHOUSE_MASTER_KEY: it does not open what is sealed in the database;"
            f" set the key that sealed it, which has the id {key_id}"
        ) from None


def _associated_data(key_id: str, context: bytes) -> bytes:
    return f"{_VERSION}.{key_id}.".encode() + context


def _parts(sealed: str) -> tuple[str, bytes]:
    version, _, rest = sealed.partition(".")
    key_id, _, encoded = rest.partition(".")
    if version != _VERSION or not _KEY_ID.fullmatch(key_id):
        raise Tampered("This is not a sealed text.")
    try:
        raw = b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:  # binascii.Error and UnicodeEncodeError are subclasses
        raise Tampered("This is not a sealed text.") from None
    if len(raw) < _NONCE_BYTES + _TAG_BYTES:
        raise Tampered("The sealed text is incomplete.")
    return key_id, raw


def load_master_keys(settings: CommonSettings) -> MasterKeys:
    """Returns the keys of GATEHOUSE_MASTER_KEY. The value is one key in base64, or `id:base64` pairs separated by
    commas, of which the first is the current key.

    Without this setting, an embedded deployable reads the key from `master.key` in its home, and creates the file at
    the first start. Raises `BadSettings`, also for an external database without a key: if a key were created on the
    disk of the process, the loss of that disk would make every sealed secret unreadable.
    """
    if settings.gatehouse_master_key is not None:
        return parse_master_keys(settings.gatehouse_master_key.get_secret_value())
    if not settings.embedded:
        raise BadSettings(
            f"GATEHOUSE_MASTER_KEY: needed with {settings.database_variable}; it seals the secrets in the database. "
            f"Make a key, keep it safe, and set the same key for every process: {_KEY_COMMAND}"
        )
    return parse_master_keys(_read_key_file(settings.home))


def parse_master_keys(text: str) -> MasterKeys:
    """Returns the keys in a value of GATEHOUSE_MASTER_KEY. Raises `BadSettings`, whose message contains no key."""
    keys: dict[str, bytes] = {}
    for part in text.split(","):
        prefix, colon, encoded = part.strip().rpartition(":")
        key = _decoded(encoded)
        key_id = prefix if colon else hashlib.sha256(b"gatehouse master key id" + key).hexdigest()[:8]
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
        raise BadSettings(f"GATEHOUSE_MASTER_KEY: a key is 32 bytes in base64. Make one: {_KEY_COMMAND}")
    return key


def _read_key_file(home: Path) -> str:
    path = home / _KEY_FILE
    try:
        if path.stat().st_mode & 0o077:
            raise BadSettings(f"{path} can be read by other users of this machine; run: chmod 600 {path}")
    except FileNotFoundError:
        _create_key_file(path)
    return path.read_text("ascii").strip()


def _create_key_file(path: Path) -> None:
    """Creates the key file. Processes may start concurrently: each writes a temporary file, and the first process that
    links its file as the key file succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".master-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b64encode(secrets.token_bytes(_KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        Path(temporary).unlink()
