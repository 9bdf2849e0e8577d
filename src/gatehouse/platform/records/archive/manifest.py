"""`archive_files`: what the archive holds. Each function is a named query of the service role's."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from gatehouse.platform.records.archive.contents import Records

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]


class File(NamedTuple):
    id: UUID
    tenant_id: UUID
    records: Records
    state: str
    #: `warm` or `cold`
    tier: str
    path: str
    rows: int
    bytes: int
    first_at: datetime
    last_at: datetime
    first_sequence: int | None
    last_sequence: int | None
    sealed_checkpoint: str
    removed_at: datetime | None


_COLUMNS: Final = ", ".join(File._fields)
_BEGIN: Final = (
    "INSERT INTO archive_files (id, tenant_id, records, state, tier, path) VALUES (%s, %s, %s, 'writing', %s, %s)"
)
_KEEP: Final = (
    "UPDATE archive_files SET state = 'kept', rows = %(rows)s, bytes = %(bytes)s, first_at = %(first_at)s,"
    " last_at = %(last_at)s, first_sequence = %(first_sequence)s, last_sequence = %(last_sequence)s,"
    " sealed_checkpoint = %(sealed_checkpoint)s, removed_at = %(removed_at)s WHERE id = %(id)s AND state = 'writing'"
)


def begin(connection: Connection, file_id: UUID, tenant_id: UUID, records: Records, *, tier: str, path: str) -> None:
    """Before anything is written: whatever happens then, somebody knows where it would be."""
    connection.execute(_BEGIN, [file_id, tenant_id, records, tier, path])


class Held(Exception):
    """There is a legal hold: nothing of the organization's may go, or move."""


def keep(connection: Connection, file: File, *, instead_of: Sequence[UUID] = ()) -> None:
    """From here on the archive has these rows; where other files held them, they do not any more. Raises `Held`."""
    with connection.transaction():
        if instead_of:
            not_held(connection, file.tenant_id)
        if connection.execute(_KEEP, file._asdict()).rowcount != 1:
            raise LookupError(f"archive_files has no row {file.id} that is being written")
        if instead_of:
            replaced = "UPDATE archive_files SET state = 'replaced' WHERE id = ANY(%s)"
            connection.execute(replaced, [list(instead_of)])


def not_held(connection: Connection, tenant_id: UUID) -> None:
    """A hold that is set now waits until the transaction ends. Raises `Held`."""
    if connection.execute("SELECT gatehouse_held(%s)", [tenant_id]).fetchone() != (False,):
        raise Held


def unfinished(connection: Connection) -> list[tuple[UUID, str]]:
    """Id and path of files that are not, or no longer, the archive's."""
    query = "SELECT id, path FROM archive_files WHERE state IN ('writing', 'replaced')"
    return [(file_id, path) for file_id, path in connection.execute(query)]


def forget(connection: Connection, file_id: UUID) -> None:
    connection.execute("DELETE FROM archive_files WHERE id = %s AND state IN ('writing', 'replaced')", [file_id])


def note_removed(connection: Connection, file_id: UUID) -> None:
    connection.execute("UPDATE archive_files SET removed_at = now() WHERE id = %s", [file_id])


def note_gone(connection: Connection, file_id: UUID, sealed_checkpoint: str) -> None:
    """It stays as the place where the chain begins now."""
    gone = "UPDATE archive_files SET state = 'gone', sealed_checkpoint = %s WHERE id = %s"
    connection.execute(gone, [sealed_checkpoint, file_id])


def kept(
    connection: Connection, tenant_id: UUID | None = None, *, records: Records | None = None, state: str = "kept"
) -> Sequence[File]:
    """In the order of what they hold; audit events in that of the chain."""
    query = (
        f"SELECT {_COLUMNS} FROM archive_files WHERE state = %(state)s"  # noqa: S608
        " AND tenant_id = coalesce(%(tenant)s, tenant_id) AND records = coalesce(%(records)s, records)"
        " ORDER BY tenant_id, records, first_sequence, first_at, id"
    )
    with connection.cursor(row_factory=class_row(File)) as cursor:
        return cursor.execute(query, {"tenant": tenant_id, "records": records, "state": state}).fetchall()


def to_remove(connection: Connection, tenant_id: UUID) -> list[File]:
    """Those whose rows the database still has, perhaps."""
    return [file for file in kept(connection, tenant_id) if file.removed_at is None]


def note_run(connection: Connection, tenant_id: UUID, at: datetime, status: str, rows: int) -> None:
    connection.execute(
        "INSERT INTO archive_runs (tenant_id, at, status, rows) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tenant_id) DO UPDATE SET at = excluded.at, status = excluded.status, rows = excluded.rows",
        [tenant_id, at, status, rows],
    )


def path(tier: str, records: Records, tenant_id: UUID, day: date, file_id: UUID) -> str:
    """Relative to the archive. `day` is when a warm file was written, and after which a cold one goes: whoever looks at
    a bucket sees it."""
    if tier == "warm":
        return f"warm/{records}/{tenant_id}/{day}/{file_id}.parquet"
    return f"cold/until-{day}/{records}/{tenant_id}/{file_id}.parquet"
