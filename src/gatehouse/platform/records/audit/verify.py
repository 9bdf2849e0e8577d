"""Whether the chain is whole (`gatehouse audit verify`). Reads events in their order, and holds one part at a time.

What is found: an event that was changed, removed, put in or moved, and a chain whose end was cut off. A forger who
writes a whole new chain and its head is found by a hash that was kept elsewhere: each event that was forwarded or
exported carries one.

What the archive holds is read where it lies. Each of its files has a checkpoint under the master key's seal that says
where in the chain it begins and ends, so that a chain whose beginning was cut off is not taken for an archived one; and
when a file's time is over, its checkpoint is where the rest goes on.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import psycopg
from psycopg.rows import class_row, namedtuple_row

from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.chain.actions import RECORDS_LOST
from gatehouse.platform.chain.links import GENESIS, AuditEvent, link, personal_digest
from gatehouse.platform.records.archive import manifest, verifying
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.places import Place
from gatehouse.platform.records.archive.verifying import Unsound

#: events read at a time
_PART: Final = 2_000

_CHAINS: Final = (
    "SELECT tenant_id, slug, sequence, hash FROM audit_heads JOIN tenants ON tenants.id = audit_heads.tenant_id"
    " WHERE slug = coalesce(%s, slug) ORDER BY slug"
)
_EVENTS: Final = "SELECT * FROM audit_events WHERE tenant_id = %s AND sequence > %s ORDER BY sequence, timestamp"


class Chain(NamedTuple):
    """What the head says: the last sequence and its hash."""

    tenant_id: UUID
    slug: str
    sequence: int
    hash: bytes


class Break(NamedTuple):
    """Where a chain does not hold, and why."""

    sequence: int
    reason: str


class Gap(NamedTuple):
    """An event that says which records an outpost could not hand in."""

    sequence: int
    reason: str


class Verifier:
    """Sees the chains as they were at its start, whatever is written meanwhile. Raises `psycopg.Error`."""

    def __init__(self, url: str, sealer: Sealer, place: Place) -> None:
        self._sealer = sealer
        self._place = place
        self._connection = roles.connect(url, SERVICE_ROLE, connect_timeout=10)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._connection.read_only = True
        #: of the chain whose `breaks` were read last
        self.gaps: list[Gap] = []

    def close(self) -> None:
        self._connection.close()

    def chains(self, slug: str | None = None) -> list[Chain]:
        with self._connection.cursor(row_factory=class_row(Chain)) as cursor:
            return cursor.execute(_CHAINS, [slug]).fetchall()

    def breaks(self, chain: Chain) -> Iterator[Break]:
        """In order. After a break it goes on with what is there, so that each is told once."""
        self.gaps = []
        sequence, previous = 0, GENESIS
        archived = [
            *manifest.kept(self._connection, chain.tenant_id, records="audit_events", state="gone"),
            *manifest.kept(self._connection, chain.tenant_id, records="audit_events"),
        ]
        for file in sorted(archived, key=lambda file: file.first_sequence or 0):
            try:
                stretch = verifying.stretch(self._sealer, file)
                if file.state == "kept":
                    verifying.check(self._sealer, self._place, file)
                    yield from self._in_file(file, sequence, previous)
                elif (stretch.first, stretch.prev_hash) != (sequence + 1, previous):
                    yield Break(sequence + 1, "missing: what the archive had does not begin there")
                sequence, previous = stretch.last, stretch.hash
            except Unsound as error:
                yield Break(file.first_sequence or sequence + 1, f"archived in {file.path}: {error}")
                sequence, previous = file.last_sequence or sequence, b""
        with self._connection.cursor("audit_events", row_factory=namedtuple_row) as cursor:
            cursor.itersize = _PART
            # Those before are in the archive, and not all gone from here yet.
            rows: Iterator[Any] = iter(cursor.execute(_EVENTS, [chain.tenant_id, sequence]))
            for row in rows:
                yield from self._checked(row, sequence, previous)
                sequence, previous = row.sequence, row.hash
        if sequence < chain.sequence:
            yield Break(sequence + 1, f"missing: the chain goes on to {chain.sequence}")
        elif (sequence, previous) != (chain.sequence, chain.hash):
            yield Break(sequence, f"not the end that the chain's head names ({chain.sequence})")

    def _in_file(self, file: File, sequence: int, previous: bytes) -> Iterator[Break]:
        for event in verifying.events(self._place, file):
            row = SimpleNamespace(**event)
            row.details = msgspec.json.decode(row.details)
            yield from self._checked(row, sequence, previous)
            sequence, previous = row.sequence, row.hash

    def _checked(self, row: Any, last: int, previous: bytes) -> Iterator[Break]:
        if row.action == RECORDS_LOST:
            held = row.details
            much = f"{held['records']} records" if held.get("records") else f"{held.get('bytes')} bytes"
            self.gaps.append(Gap(row.sequence, f"{row.reason}: {much} of outpost {row.resource_id}"))
        yield from _checked(row, last, previous)


def _checked(row: Any, last: int, previous: bytes) -> Iterator[Break]:
    if row.sequence <= last:
        yield Break(row.sequence, "there twice")
    elif row.sequence > last + 1:
        yield Break(last + 1, "missing" if row.sequence == last + 2 else f"missing, up to {row.sequence - 1}")
    elif row.prev_hash != previous:
        yield Break(row.sequence, "does not follow the event before it")
    event = AuditEvent(**{name: getattr(row, name) for name in AuditEvent.__struct_fields__})
    if not _is_forgotten(event) if event.salt is None else personal_digest(event) != row.personal_digest:
        yield Break(row.sequence, "actor, address or details were changed")
    elif link(row.prev_hash, row.tenant_id, row.sequence, event, row.personal_digest) != row.hash:
        yield Break(row.sequence, "changed: its hash is another")


def _is_forgotten(event: AuditEvent) -> bool:
    """Whether an event without its salt, whose personal fields cannot be checked, is as `gatehouse_anonymise` leaves
    one: without the removed person who did it, or without the details of the removed person to whom it was done."""
    of_them = event.actor_id is None and event.ip is None
    return of_them or (event.resource_type == "user" and event.details == {})
