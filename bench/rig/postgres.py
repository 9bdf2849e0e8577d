"""Gatehouse's embedded PostgreSQL, seen from outside: how many records have arrived, and rows for `scale.py`."""

from pathlib import Path
from typing import Any

#: the table in which a usage record ends up, with its partitions
RECORDS = "usage_records%"


def connect(home: Path) -> Any:
    """A connection as the cluster's owner to the database of `home`. Raises `OSError` where none runs."""
    import psycopg  # noqa: PLC0415 - comes with Gatehouse; a run without it needs none

    lines = (home / "postgres" / "postmaster.pid").read_text().splitlines()
    server = f"host={lines[4].strip()} port={lines[3].strip()} user=postgres"
    with psycopg.connect(f"{server} dbname=postgres") as first:
        names = [name for (name,) in first.execute("select datname from pg_database where not datistemplate")]
    for name in sorted(names, key="postgres".__eq__):
        connection = psycopg.connect(f"{server} dbname={name}", autocommit=True)
        if connection.execute("select 1 from pg_class where relname like %s", (RECORDS,)).fetchone():
            return connection
        connection.close()
    raise OSError(f"no table {RECORDS} in the PostgreSQL of {home}")


def recorded(connection: Any) -> int:
    """Usage records inserted since the server's start. From the statistics: late by a second, and free at any size."""
    query = "select coalesce(sum(n_tup_ins), 0)::bigint from pg_stat_user_tables where relname like %s"
    count: int = connection.execute(query, (RECORDS,)).fetchone()[0]
    return count
