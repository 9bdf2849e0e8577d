"""Verifies the audit chain (`gatehouse audit verify`). Reads the events in order, in batches.

The verification finds changed, removed, inserted and moved events, and a chain whose end was cut off. To find a chain
that was completely rewritten together with its head, compare a hash that was stored elsewhere. Each forwarded or
exported event contains one.

Archived events are read from the archive. Each file has a sealed checkpoint with the range of the chain that the file
contains, so a chain whose beginning was cut off is not mistaken for an archived one. After an expired file, the chain
continues at the end of the range in its checkpoint.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import class_row, namedtuple_row

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.changes.chain.links import GENESIS
from gatehouse.platform.records.archive import verifying
from gatehouse.platform.records.archive.storage import manifest
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.storage.places import ArchiveStorage
from gatehouse.platform.records.archive.verifying import DamagedFile
from gatehouse.platform.records.audit.checking import Break, Gap, check_event, gap_of

#: Number of events that are read at a time.
_BATCH_EVENTS: Final = 2_000

_CHAINS: Final = (
    "SELECT tenant_id, slug, sequence, hash FROM audit_heads JOIN tenants ON tenants.id = audit_heads.tenant_id"
    " WHERE slug = coalesce(%s, slug) ORDER BY slug"
)
_EVENTS: Final = "SELECT * FROM audit_events WHERE tenant_id = %s AND sequence > %s ORDER BY sequence, timestamp"


class AuditChain(NamedTuple):
    """A chain, with the last sequence and hash according to its head."""

    tenant_id: UUID
    slug: str
    sequence: int
    hash: bytes


class Verifier:
    """Verifies the chains in one snapshot of the database. Raises `psycopg.Error`."""

    def __init__(self, url: str, sealer: Sealer, storage: ArchiveStorage) -> None:
        self._sealer = sealer
        self._storage = storage
        self._connection = roles.connect(url, SERVICE_ROLE, connect_timeout=10)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = True
        #: gaps of the chain that `breaks` was last called for
        self.gaps: list[Gap] = []

    def close(self) -> None:
        self._connection.close()

    def chains(self, slug: str | None = None) -> list[AuditChain]:
        with self._connection.cursor(row_factory=class_row(AuditChain)) as cursor:
            return cursor.execute(_CHAINS, [slug]).fetchall()

    def breaks(self, chain: AuditChain) -> Iterator[Break]:
        """Yield the breaks of the chain in order. Each break is reported once, because the check continues after it
        with the existing event."""
        self.gaps = []
        sequence, previous = 0, GENESIS
        archived = [
            *manifest.list_files(self._connection, chain.tenant_id, records="audit_events", state="gone"),
            *manifest.list_files(self._connection, chain.tenant_id, records="audit_events"),
        ]
        for file in sorted(archived, key=lambda file: file.first_sequence or 0):
            try:
                file_range = verifying.chain_range(self._sealer, file)
                if file.state == "kept":
                    verifying.check(self._sealer, self._storage, file)
                    yield from self._check_file(file, sequence, previous)
                elif (file_range.first, file_range.prev_hash) != (sequence + 1, previous):
                    yield Break(sequence + 1, "missing: the archived range does not begin there")
                sequence, previous = file_range.last, file_range.hash
            except DamagedFile as error:
                yield Break(file.first_sequence or sequence + 1, f"archived in {file.path}: {error}")
                sequence, previous = file.last_sequence or sequence, b""
        with self._connection.cursor("audit_events", row_factory=namedtuple_row) as cursor:
            cursor.itersize = _BATCH_EVENTS
            # Earlier events are in the archive, even if some of them are not deleted from the database yet.
            rows: Iterator[Any] = iter(cursor.execute(_EVENTS, [chain.tenant_id, sequence]))
            for row in rows:
                yield from self._check_event(row, sequence, previous)
                sequence, previous = row.sequence, row.hash
        if sequence < chain.sequence:
            yield Break(sequence + 1, f"missing: the chain continues to {chain.sequence}")
        elif (sequence, previous) != (chain.sequence, chain.hash):
            yield Break(sequence, f"differs from the end that the chain's head names ({chain.sequence})")

    def _check_file(self, file: ArchiveFile, sequence: int, previous: bytes) -> Iterator[Break]:
        for event in verifying.events(self._storage, file):
            row = SimpleNamespace(**event)
            row.details = msgspec.json.decode(row.details)
            yield from self._check_event(row, sequence, previous)
            sequence, previous = row.sequence, row.hash

    def _check_event(self, row: Any, last: int, previous: bytes) -> Iterator[Break]:
        if (gap := gap_of(row)) is not None:
            self.gaps.append(gap)
        yield from check_event(row, last, previous)
