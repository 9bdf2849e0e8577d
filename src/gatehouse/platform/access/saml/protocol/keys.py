"""Keys that sign this platform's SAML messages, and their certificates in the metadata.

    (none) -> next -> signing -> previous -> (deleted)

The first use creates the first key. A rotation has two steps: `prepare` publishes the next certificate, and `activate`
starts to sign with it. Between the two steps, administrators let their identity providers read the metadata again.
Most providers do not read it again on their own.
"""

import asyncio
from datetime import timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.storage.locks import GlobalLock, acquire
from gatehouse.platform.changes.change import Change

_RSA_KEY_BITS: Final = 3072
_CERTIFICATE_VALIDITY: Final = timedelta(days=3650)

_ALL_KEYS: Final = text("SELECT id, certificate, state FROM saml_keys ORDER BY created_at, id")
_SIGNING_KEY: Final = text("SELECT id, certificate, sealed_private FROM saml_keys WHERE state = 'signing'")
_INSERT_KEY: Final = text(
    "INSERT INTO saml_keys (id, certificate, sealed_private, state) VALUES (:id, :certificate, :sealed, :state)"
)
_DELETE_KEYS: Final = text("DELETE FROM saml_keys WHERE state = :state")
_CHANGE_STATE: Final = text("UPDATE saml_keys SET state = :to WHERE state = :was RETURNING id")


class NoNextKey(Exception):
    """There is no next key to activate."""


class SamlKey(msgspec.Struct, frozen=True):
    """A signing key. `certificate` is PEM."""

    id: str
    certificate: str
    private_key: rsa.RSAPrivateKey

    def __repr__(self) -> str:
        return f"SamlKey({self.id})"


def sealing_context(key_id: str) -> bytes:
    return f"saml_key:{key_id}".encode()


async def signing_key(database: Database, sealer: Sealer) -> SamlKey:
    """Return the key that signs. Create it if there is none. Raises `CannotOpen`."""
    async with database.service() as session:
        row = (await session.execute(_SIGNING_KEY)).first()
        if row is None:
            await acquire(session, GlobalLock.SAML_KEYS)
            row = (await session.execute(_SIGNING_KEY)).first()
        if row is None:
            await _create_key(session, sealer, "signing")
            row = (await session.execute(_SIGNING_KEY)).one()
            await session.commit()
    opened = sealer.open(row.sealed_private, context=sealing_context(row.id))
    # This platform has created and sealed the key, so its primes need no check, which would block the event loop for
    # 0.1 s.
    private_key = load_pem_private_key(opened, password=None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(private_key, rsa.RSAPrivateKey)
    return SamlKey(row.id, row.certificate, private_key)


async def certificates(database: Database, sealer: Sealer) -> list[str]:
    """Return all certificates in PEM for the metadata, the certificate of the signing key first."""
    await signing_key(database, sealer)
    async with database.service() as session:
        rows = (await session.execute(_ALL_KEYS)).all()
    return [row.certificate for row in sorted(rows, key=lambda row: row.state != "signing")]


async def prepare(database: Database, sealer: Sealer) -> str:
    """Publish the key that signs next and return its id. A key that was prepared before and never used is deleted."""
    async with database.service() as session:
        await acquire(session, GlobalLock.SAML_KEYS)
        await session.execute(_DELETE_KEYS, {"state": "next"})
        key_id = await _create_key(session, sealer, "next")
        change = Change(session, None)
        change.record("saml_key.prepared", "saml_key", key_id)
        await change.commit()
    return key_id


async def activate(database: Database) -> tuple[str, str | None]:
    """Sign with the next key from now on. Return its id and the old key's id. The old certificate stays in the metadata
    until the next rotation. The certificate before it is deleted. Raises `NoNextKey`."""
    async with database.service() as session:
        await acquire(session, GlobalLock.SAML_KEYS)
        if not any(row.state == "next" for row in await session.execute(_ALL_KEYS)):
            raise NoNextKey
        await session.execute(_DELETE_KEYS, {"state": "previous"})
        old: str | None = (await session.execute(_CHANGE_STATE, {"was": "signing", "to": "previous"})).scalar()
        new: str = (await session.execute(_CHANGE_STATE, {"was": "next", "to": "signing"})).scalar_one()
        change = Change(session, None)
        change.record("saml_key.rotated", "saml_key", new, previous=old)
        await change.commit()
    return new, old


async def _create_key(session: AsyncSession, sealer: Sealer, state: str) -> str:
    # Creating a key takes half a second of a core, so it runs in a thread.
    private_key = await asyncio.to_thread(rsa.generate_private_key, 65537, _RSA_KEY_BITS)
    certificate = _self_signed(private_key)
    key_id = certificate.fingerprint(hashes.SHA256()).hex()[:16]
    pem = private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    values = {
        "id": key_id,
        "certificate": certificate.public_bytes(Encoding.PEM).decode("ascii"),
        "sealed": str(sealer.seal(pem, context=sealing_context(key_id))),
        "state": state,
    }
    await session.execute(_INSERT_KEY, values)
    return key_id


def _self_signed(private_key: rsa.RSAPrivateKey) -> x509.Certificate:
    """Return a certificate for the key. Its dates do not matter: providers trust it because of the metadata."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gatehouse single sign-on")])
    now = utc_now()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _CERTIFICATE_VALIDITY)
        .sign(private_key, hashes.SHA256())
    )
