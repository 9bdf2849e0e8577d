"""The keys with which this platform signs its requests, and their certificates in the metadata.

    (none) -> next -> signing -> previous -> (gone)

The first is made when one is first needed. A rotation has two steps, because identity providers read the metadata when
their administrators make them: `prepare` publishes the next certificate, `activate` lets it sign.
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
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.storage.locks import GlobalLock, acquire
from gatehouse.platform.change import Change

_BITS: Final = 3072
_VALID: Final = timedelta(days=3650)

_ALL: Final = text("SELECT id, certificate, state FROM saml_keys ORDER BY created_at, id")
_SIGNING: Final = text("SELECT id, certificate, sealed_private FROM saml_keys WHERE state = 'signing'")
_ADD: Final = text(
    "INSERT INTO saml_keys (id, certificate, sealed_private, state) VALUES (:id, :certificate, :sealed, :state)"
)
_DROP: Final = text("DELETE FROM saml_keys WHERE state = :state")
_MOVE: Final = text("UPDATE saml_keys SET state = :to WHERE state = :was RETURNING id")


class NothingPrepared(Exception):
    """There is no next key."""


class Key(msgspec.Struct, frozen=True):
    """`certificate` is PEM."""

    id: str
    certificate: str
    private: rsa.RSAPrivateKey

    def __repr__(self) -> str:
        return f"Key({self.id})"


def sealing_context(key_id: str) -> bytes:
    return f"saml_key:{key_id}".encode()


async def signing(database: Database, sealer: Sealer) -> Key:
    """The key that signs; made if there is none yet. Raises `CannotOpen`."""
    async with database.service() as session:
        row = (await session.execute(_SIGNING)).first()
        if row is None:
            await acquire(session, GlobalLock.SAML_KEYS)
            row = (await session.execute(_SIGNING)).first()
        if row is None:
            await _add(session, sealer, "signing")
            row = (await session.execute(_SIGNING)).one()
            await session.commit()
    opened = sealer.open(row.sealed_private, context=sealing_context(row.id))
    # Made and sealed here: its primes need no proof, which takes a tenth of a second of the loop.
    private = load_pem_private_key(opened, password=None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(private, rsa.RSAPrivateKey)
    return Key(row.id, row.certificate, private)


async def certificates(database: Database, sealer: Sealer) -> list[str]:
    """All in PEM, for the metadata: the one that signs, then the others."""
    await signing(database, sealer)
    async with database.service() as session:
        rows = (await session.execute(_ALL)).all()
    return [row.certificate for row in sorted(rows, key=lambda row: row.state != "signing")]


async def prepare(database: Database, sealer: Sealer) -> str:
    """Publishes the key that signs next; one that was prepared before and never used gives way. Gives its id."""
    async with database.service() as session:
        await acquire(session, GlobalLock.SAML_KEYS)
        await session.execute(_DROP, {"state": "next"})
        key_id = await _add(session, sealer, "next")
        change = Change(session, None)
        change.record("saml_key.prepared", "saml_key", key_id)
        await change.commit()
    return key_id


async def activate(database: Database) -> tuple[str, str | None]:
    """The next key signs from now on. The old one's certificate stays in the metadata until the next rotation, the one
    before it goes. The answer is the new id, and the old one. Raises `NothingPrepared`."""
    async with database.service() as session:
        await acquire(session, GlobalLock.SAML_KEYS)
        if not any(row.state == "next" for row in await session.execute(_ALL)):
            raise NothingPrepared
        await session.execute(_DROP, {"state": "previous"})
        old: str | None = (await session.execute(_MOVE, {"was": "signing", "to": "previous"})).scalar()
        new: str = (await session.execute(_MOVE, {"was": "next", "to": "signing"})).scalar_one()
        change = Change(session, None)
        change.record("saml_key.rotated", "saml_key", new, previous=old)
        await change.commit()
    return new, old


async def _add(session: AsyncSession, sealer: Sealer, state: str) -> str:
    # Half a second of a core, once: in a thread of its own.
    private = await asyncio.to_thread(rsa.generate_private_key, 65537, _BITS)
    certificate = _self_signed(private)
    key_id = certificate.fingerprint(hashes.SHA256()).hex()[:16]
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    values = {
        "id": key_id,
        "certificate": certificate.public_bytes(Encoding.PEM).decode("ascii"),
        "sealed": str(sealer.seal(pem, context=sealing_context(key_id))),
        "state": state,
    }
    await session.execute(_ADD, values)
    return key_id


def _self_signed(private: rsa.RSAPrivateKey) -> x509.Certificate:
    """Its dates mean little: identity providers trust it because it stands in the metadata."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Gatehouse single sign-on")])
    now = utc_now()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _VALID)
        .sign(private, hashes.SHA256())
    )
