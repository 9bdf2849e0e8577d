"""Gatehouse's embedded PostgreSQL and journal, seen from outside: what has arrived, and what is on its way."""

from contextlib import suppress
from pathlib import Path
from typing import Any

#: the table in which a usage record ends up
RECORDS = "usage_records"


def connect(home: Path) -> Any:
    """A connection as the cluster's owner to the database of `home`. Raises `OSError` where none runs."""
    import psycopg  # noqa: PLC0415 - comes with Gatehouse; a run without it needs none

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
    """Usage records in the database. Counts them all: not while something is measured."""
    count: int = connection.execute("select count(*) from usage_records").fetchone()[0]
    return count


def backlog(connection: Any, home: Path) -> int:
    """Bytes in the journals of `home` that the database does not have yet."""
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
    """Mean length of the lines that the journals of `home` hold now."""
    text = b""
    for path in (home / "journal").glob("*/*.log"):
        # One that was drained meanwhile is gone.
        with suppress(FileNotFoundError):
            text += path.read_bytes()[-1_000_000:]
    return len(text) / max(1, text.count(b"\n"))
