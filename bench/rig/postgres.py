"""Reads Gatehouse's embedded PostgreSQL and journal from outside: the stored records, and those still in the
journal."""

from contextlib import suppress
from pathlib import Path
from typing import Any

#: the table in which usage records are stored
RECORDS = "usage_records"


def connect(home: Path) -> Any:
    """Return a connection to the database of `home`, as the owner of the cluster. Raises `OSError` if it does not
    run."""
    import psycopg  # noqa: PLC0415 - part of Gatehouse; a run without Gatehouse does not need it

    lines = (home / "postgres" / "postmaster.pid").read_text().splitlines()
    server = f"host={lines[4].strip()} port={lines[3].strip()} user=postgres"
    with psycopg.connect(f"{server} dbname=postgres") as first:
        names = [name for (name,) in first.execute("select datname from pg_database where not datistemplate")]
    for name in sorted(names, key="postgres".__eq__):
        connection = psycopg.connect(f"{server} dbname={name}", autocommit=True)
        if connection.execute("select 1 from pg_class where relname = %s", (RECORDS,)).fetchone():
            return connection
        connection.close()
    raise OSError(f"no table {RECORDS} in the PostgreSQL of {home}")


def recorded(connection: Any) -> int:
    """Return the number of usage records in the database. It counts all rows, so it must not run during a
    measurement."""
    count: int = connection.execute("select count(*) from usage_records").fetchone()[0]
    return count


def backlog(connection: Any, home: Path) -> int:
    """Return the number of bytes in the journals of `home` that are not in the database yet."""
    rows = connection.execute("select writer_id, segment, position from journal_positions")
    positions = {str(writer): (segment, position) for writer, segment, position in rows}
    waiting = 0
    for path in (home / "journal").glob("*/*.log"):
        segment, offset = positions.get(path.parent.name, (0, 0))
        number = int(path.stem)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        waiting += size - offset if number == segment else size if number > segment else 0
    return waiting


def bytes_a_record(home: Path) -> float:
    """Return the mean length of the lines that are in the journals of `home` now."""
    text = b""
    for path in (home / "journal").glob("*/*.log"):
        # A segment that was drained in the meantime no longer exists.
        with suppress(FileNotFoundError):
            text += path.read_bytes()[-1_000_000:]
    return len(text) / max(1, text.count(b"\n"))
