"""The portal's private certificate authorities, which issue outposts' certificates (docs/portal.md, "The authority").

One authority issues certificates. Earlier authorities are trusted as long as a certificate that they have issued may be
valid. The portal sends the trusted authorities to the platform (`outposts.jobs`).
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import psycopg
from cryptography import x509
from sqlalchemy import text

from gatehouse.foundation.certificates.authority import CertificateAuthority
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.portal.change import record_by_hand

#: Lifetime of an outpost's certificate.
CERTIFICATE_LIFETIME: Final = timedelta(days=90)
_AUTHORITY_LIFETIME: Final = timedelta(days=3650)
#: Additional time for which a retired authority is trusted, because other processes may still issue a certificate with
#: it for a moment.
_RETIREMENT_MARGIN: Final = timedelta(days=1)
#: Maximum number of trusted authorities that the platform accepts (`PUT /v1/platform/outpost-trust`).
MAX_AUTHORITIES: Final = 8
_REFRESH_INTERVAL_SECONDS: Final = 1.0

#: The first row is the issuing authority.
TRUSTED_AUTHORITIES: Final = text(
    "SELECT id, certificate, sealed_private, retired_at FROM authorities WHERE trusted_until > now()"
    " ORDER BY retired_at DESC NULLS FIRST, created_at DESC, id"
)


class NoAuthority(Unavailable):
    message = "The authority's key cannot be decrypted, so no certificate can be issued: check GATEHOUSE_MASTER_KEY."


class TooManyAuthorities(Exception):
    """No authority was added. The message states the reason in one line."""


class Authorities:
    """Reads the authorities in the database for one process."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._trusted: Sequence[x509.Certificate] = ()
        self._refreshed_at = -_REFRESH_INTERVAL_SECONDS

    async def trusted(self) -> Sequence[x509.Certificate]:
        """Returns the certificates of the trusted authorities, in a state that is at most one second old."""
        if (queried_at := time.monotonic()) - self._refreshed_at >= _REFRESH_INTERVAL_SECONDS:
            async with self._database.service() as session:
                rows = (await session.execute(TRUSTED_AUTHORITIES)).all()
            self._trusted = [x509.load_pem_x509_certificate(row.certificate.encode()) for row in rows]
            self._refreshed_at = queried_at
        return self._trusted

    async def issuing(self) -> tuple[UUID, CertificateAuthority, str]:
        """Returns the id of the issuing authority, the authority, and the certificates of all trusted authorities as
        PEM. The first one is that of the issuing authority. Raises `NoAuthority`."""
        async with self._database.service() as session:
            rows = (await session.execute(TRUSTED_AUTHORITIES)).all()
        if not rows or rows[0].retired_at is not None:
            raise NoAuthority
        try:
            key = self._sealer.open(rows[0].sealed_private, context=context(rows[0].id))
        except CannotOpen:
            raise NoAuthority from None
        return (
            rows[0].id,
            CertificateAuthority.from_pem(rows[0].certificate, key),
            "".join(row.certificate for row in rows),
        )


Connection = psycopg.Connection[tuple[object, ...]]


def ensure(connection: Connection, sealer: Sealer) -> None:
    """Adds an authority if there is no issuing authority."""
    if connection.execute("SELECT 1 FROM portal.authorities WHERE retired_at IS NULL").fetchone() is None:
        _add(connection, sealer)


def rotate(connection: Connection, sealer: Sealer, *, stolen: bool = False) -> UUID:
    """Retires the issuing authority and adds a new one. Returns the id of the new one.

    Certificates of a retired authority are valid until they expire. If `stolen` is true, the certificates of all former
    authorities become invalid. A running portal sends the new authorities to the platform. Raises `TooManyAuthorities`.
    """
    # The lock serializes concurrent rotations.
    connection.execute("LOCK portal.authorities IN SHARE ROW EXCLUSIVE MODE")
    trust_seconds = 0.0 if stolen else (CERTIFICATE_LIFETIME + _RETIREMENT_MARGIN).total_seconds()
    connection.execute(
        "UPDATE portal.authorities SET retired_at = coalesce(retired_at, clock_timestamp()),"
        " trusted_until = least(trusted_until, clock_timestamp() + make_interval(secs => %s))"
        " WHERE retired_at IS NULL OR %s",
        [trust_seconds, stolen],
    )
    row = connection.execute(
        "SELECT count(*), min(trusted_until) FROM portal.authorities WHERE trusted_until > clock_timestamp()"
    ).fetchone()
    assert row is not None
    if isinstance(row[0], int) and row[0] >= MAX_AUTHORITIES:
        raise TooManyAuthorities(f"{row[0]} authorities are trusted, which is the maximum; one ends on {row[1]}")
    connection.execute(
        "INSERT INTO portal.jobs (id, kind, lane) VALUES (%s, 'trust_push', 'trust_push')"
        " ON CONFLICT (kind, lane) WHERE status = 'queued' DO UPDATE SET run_at = now()",
        [new_id()],
    )
    authority_id = _add(connection, sealer)
    record_by_hand(connection, "authority.rotated", "authority", authority_id, stolen=stolen)
    return authority_id


def _add(connection: Connection, sealer: Sealer) -> UUID:
    authority = CertificateAuthority.make("Gatehouse portal", lifetime=_AUTHORITY_LIFETIME)
    authority_id = new_id()
    connection.execute(
        # Use clock_timestamp(), because now() is the beginning of this transaction, and another transaction may have
        # added an authority since.
        "INSERT INTO portal.authorities (id, certificate, sealed_private, created_at, trusted_until)"
        " VALUES (%s, %s, %s, clock_timestamp(), %s)",
        [
            authority_id,
            authority.pem,
            str(sealer.seal(authority.private_pem(), context=context(authority_id))),
            authority.certificate.not_valid_after_utc,
        ],
    )
    return authority_id


def context(authority_id: object) -> bytes:
    return f"portal_authority:{authority_id}".encode()
