"""Queries on `archive_files`, the list of archived files. The queries run as the service role."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from gatehouse.platform.records.archive.storage.contents import Records

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]


class ArchiveFile(NamedTuple):
    """A row of `archive_files`."""

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
    #: when the records of the file were deleted from the database, or None if they may still be there
    removed_at: datetime | None

    @property
    def is_only_in_archive(self) -> bool:
        """Return whether the records of the file were deleted from the database."""
        return self.removed_at is not None


_COLUMNS: Final = ", ".join(ArchiveFile._fields)
_BEGIN: Final = (
    "INSERT INTO archive_files (id, tenant_id, records, state, tier, path) VALUES (%s, %s, %s, 'writing', %s, %s)"
)
_KEEP: Final = (
    "UPDATE archive_files SET state = 'kept', rows = %(rows)s, bytes = %(bytes)s, first_at = %(first_at)s,"
    " last_at = %(last_at)s, first_sequence = %(first_sequence)s, last_sequence = %(last_sequence)s,"
    " sealed_checkpoint = %(sealed_checkpoint)s, removed_at = %(removed_at)s WHERE id = %(id)s AND state = 'writing'"
)


def begin(connection: Connection, file_id: UUID, tenant_id: UUID, records: Records, *, tier: str, path: str) -> None:
    """Insert the row of a file before the file is written, so that its path is known after a crash."""
    connection.execute(_BEGIN, [file_id, tenant_id, records, tier, path])


class UnderLegalHold(Exception):
    """The organization is under a legal hold, so none of its records may be deleted or moved."""


def keep(connection: Connection, file: ArchiveFile, *, replaces: Sequence[UUID] = ()) -> None:
    """Mark the file as kept, and the files that it replaces as replaced. Raises `UnderLegalHold`."""
    with connection.transaction():
        if replaces:
            ensure_no_legal_hold(connection, file.tenant_id)
        if connection.execute(_KEEP, file._asdict()).rowcount != 1:
            raise LookupError(f"archive_files has no row {file.id} in state 'writing'")
        if replaces:
            connection.execute("UPDATE archive_files SET state = 'replaced' WHERE id = ANY(%s)", [list(replaces)])


def ensure_no_legal_hold(connection: Connection, tenant_id: UUID) -> None:
    """Check that there is no legal hold, and prevent one from being set until the transaction ends. Raises
    `UnderLegalHold`."""
    if connection.execute("SELECT gatehouse_held(%s)", [tenant_id]).fetchone() != (False,):
        raise UnderLegalHold


def unfinished(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the id and path of files that do not belong to the archive yet, or no longer belong to it."""
    query = "SELECT id, path FROM archive_files WHERE state IN ('writing', 'replaced')"
    return [(file_id, path) for file_id, path in connection.execute(query)]


def delete_entry(connection: Connection, file_id: UUID) -> None:
    """Delete the row of an unfinished or replaced file."""
    connection.execute("DELETE FROM archive_files WHERE id = %s AND state IN ('writing', 'replaced')", [file_id])


def note_removed(connection: Connection, file_id: UUID) -> None:
    """Record that the rows of the file are deleted from the database."""
    connection.execute("UPDATE archive_files SET removed_at = now() WHERE id = %s", [file_id])


def note_expired(connection: Connection, file_id: UUID, sealed_checkpoint: str) -> None:
    """Record that the file has expired. The row of the file stays, because the remaining chain begins after the
    file."""
    update = "UPDATE archive_files SET state = 'gone', sealed_checkpoint = %s WHERE id = %s"
    connection.execute(update, [sealed_checkpoint, file_id])


def list_files(
    connection: Connection, tenant_id: UUID | None = None, *, records: Records | None = None, state: str = "kept"
) -> Sequence[ArchiveFile]:
    """Return the files in this state in the order of their records. Files of audit events are in the order of the
    chain."""
    query = (
        f"SELECT {_COLUMNS} FROM archive_files WHERE state = %(state)s"  # noqa: S608
        " AND tenant_id = coalesce(%(tenant)s, tenant_id) AND records = coalesce(%(records)s, records)"
        " ORDER BY tenant_id, records, first_sequence, first_at, id"
    )
    with connection.cursor(row_factory=class_row(ArchiveFile)) as cursor:
        return cursor.execute(query, {"tenant": tenant_id, "records": records, "state": state}).fetchall()


def to_remove(connection: Connection, tenant_id: UUID) -> list[ArchiveFile]:
    """Return the kept files whose rows may still be in the database."""
    return [file for file in list_files(connection, tenant_id) if not file.is_only_in_archive]


def note_run(connection: Connection, tenant_id: UUID, at: datetime, status: str, rows: int) -> None:
    """Record the result of the organization's last run."""
    connection.execute(
        "INSERT INTO archive_runs (tenant_id, at, status, rows) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (tenant_id) DO UPDATE SET at = excluded.at, status = excluded.status, rows = excluded.rows",
        [tenant_id, at, status, rows],
    )


def path(tier: str, records: Records, tenant_id: UUID, day: date, file_id: UUID) -> str:
    """Return the path of a file relative to the archive. `day` is the day on which a warm file was written, or the last
    day of a cold file. The day is in the path so that the listing of a bucket shows it."""
    if tier == "warm":
        return f"warm/{records}/{tenant_id}/{day}/{file_id}.parquet"
    return f"cold/until-{day}/{records}/{tenant_id}/{file_id}.parquet"
