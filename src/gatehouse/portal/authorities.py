"""The portal's private authorities: they issue outposts' certificates (decisions 8, Outposts).

One issues; those before it are trusted as long as something that they have issued can be good. Whom the platform
believes is what the portal tells it (`outposts.jobs`).
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import psycopg
from cryptography import x509
from sqlalchemy import text

from gatehouse.foundation.authority import Authority
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage.database import Database
from gatehouse.portal.change import record_by_hand

#: How long an outpost's certificate is good.
LIFETIME: Final = timedelta(days=90)
_OWN_LIFETIME: Final = timedelta(days=3650)
#: One that takes another's place issues nothing more a moment later: this is a day.
_MARGIN: Final = timedelta(days=1)
#: What the platform takes (`PUT /v1/platform/outpost-trust`).
MOST: Final = 8
_LOOK_SECONDS: Final = 1.0

#: The one that issues comes first.
TRUSTED: Final = text(
    "SELECT id, certificate, sealed_private, retired_at FROM authorities WHERE trusted_until > now()"
    " ORDER BY retired_at DESC NULLS FIRST, created_at DESC, id"
)


class NoAuthority(Unavailable):
    message = "The authority's key cannot be opened, so no certificate can be issued: see GATEHOUSE_MASTER_KEY."


class TooManyAuthorities(Exception):
    """One line: why none was added."""


class Authorities:
    """One a process."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._trusted: Sequence[x509.Certificate] = ()
        self._looked_at = -_LOOK_SECONDS

    async def trusted(self) -> Sequence[x509.Certificate]:
        """Whose certificates are believed, as it was a second ago at most."""
        if (asked_at := time.monotonic()) - self._looked_at >= _LOOK_SECONDS:
            async with self._database.service() as session:
                rows = (await session.execute(TRUSTED)).all()
            self._trusted = [x509.load_pem_x509_certificate(row.certificate.encode()) for row in rows]
            self._looked_at = asked_at
        return self._trusted

    async def issuing(self) -> tuple[UUID, Authority, str]:
        """The authority that issues now, with its id, and the certificates of all that are trusted as PEM, its own
        first. Raises `NoAuthority`."""
        async with self._database.service() as session:
            rows = (await session.execute(TRUSTED)).all()
        if not rows or rows[0].retired_at is not None:
            raise NoAuthority
        try:
            key = self._sealer.open(rows[0].sealed_private, context=context(rows[0].id))
        except CannotOpen:
            raise NoAuthority from None
        return rows[0].id, Authority.from_pem(rows[0].certificate, key), "".join(row.certificate for row in rows)


Connection = psycopg.Connection[tuple[object, ...]]


def ensure(connection: Connection, sealer: Sealer) -> None:
    """Makes one where none issues yet."""
    if connection.execute("SELECT 1 FROM portal.authorities WHERE retired_at IS NULL").fetchone() is None:
        _add(connection, sealer)


def rotate(connection: Connection, sealer: Sealer, *, stolen: bool = False) -> UUID:
    """Another one issues from now on; what the ones before have issued is good until it ends, or with `stolen` no more.
    The platform hears of it as soon as a portal runs. The answer is the new one's id. Raises `TooManyAuthorities`."""
    # Two at once are one after the other.
    connection.execute("LOCK portal.authorities IN SHARE ROW EXCLUSIVE MODE")
    for_seconds = 0.0 if stolen else (LIFETIME + _MARGIN).total_seconds()
    connection.execute(
        "UPDATE portal.authorities SET retired_at = coalesce(retired_at, clock_timestamp()),"
        " trusted_until = least(trusted_until, clock_timestamp() + make_interval(secs => %s))"
        " WHERE retired_at IS NULL OR %s",
        [for_seconds, stolen],
    )
    row = connection.execute(
        "SELECT count(*), min(trusted_until) FROM portal.authorities WHERE trusted_until > clock_timestamp()"
    ).fetchone()
    assert row is not None
    if isinstance(row[0], int) and row[0] >= MOST:
        raise TooManyAuthorities(f"{row[0]} authorities are trusted, which is the most; one ends on {row[1]}")
    connection.execute(
        "INSERT INTO portal.jobs (id, kind, lane) VALUES (%s, 'trust_push', 'trust_push')"
        " ON CONFLICT (kind, lane) WHERE status = 'queued' DO UPDATE SET run_at = now()",
        [new_id()],
    )
    made = _add(connection, sealer)
    record_by_hand(connection, "authority.rotated", "authority", made, stolen=stolen)
    return made


def _add(connection: Connection, sealer: Sealer) -> UUID:
    made = Authority.make("Gatehouse portal", lifetime=_OWN_LIFETIME)
    authority_id = new_id()
    connection.execute(
        # The clock's time: the transaction's is when it began, and another may have come before.
        "INSERT INTO portal.authorities (id, certificate, sealed_private, created_at, trusted_until)"
        " VALUES (%s, %s, %s, clock_timestamp(), %s)",
        [
            authority_id,
            made.pem,
            str(sealer.seal(made.private_pem(), context=context(authority_id))),
            made.certificate.not_valid_after_utc,
        ],
    )
    return authority_id


def context(authority_id: object) -> bytes:
    return f"portal_authority:{authority_id}".encode()
