"""Runs the archiver repeatedly. Each time, it kills itself at its n-th step. Run this with `python -m` and a JSON
document on standard input (see `test_killed.py`). It fails if a record is lost, and prints the number
of runs."""

import itertools
import json
import os
import signal
import sys
from base64 import b64decode
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pyarrow.parquet as pq

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.platform.records.archive import (
    ageing,
    archiver,
    forgetting,
    jobs,
    joining,
)
from gatehouse.platform.records.archive.storage import files, manifest
from gatehouse.platform.records.archive.storage.places import Folder


def main() -> None:
    task = json.load(sys.stdin)
    settings = Settings.from_environment(task["environment"])
    sealer = Sealer({name: b64decode(key) for name, key in task["keys"].items()}, task["current"])
    files.MAX_FILE_ROWS, archiver._REMOVAL_ROWS, files.GROUP_ROWS = 6, 3, 4
    for step in itertools.count(1):
        process = os.fork()
        if process == 0:
            kill_at(step)
            jobs.run(settings, task["url"], sealer, [UUID(task["tenant"])], now=datetime.fromisoformat(task["now"]))
            os._exit(0)
        _, ended = os.waitpid(process, 0)
        check(task, Path(settings.gatehouse_home) / "archive")
        if ended == 0:
            sys.stdout.write(json.dumps({"runs": step}))
            return
        assert os.WTERMSIG(ended) == signal.SIGKILL, ended


def kill_at(step: int) -> None:
    counter = itertools.count(1)

    def counting(owner: Any, name: str) -> None:
        work = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            if next(counter) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*args, **options)

        setattr(owner, name, counted)

    for owner, names in (
        (psycopg.Connection, ("execute", "commit")), (psycopg.Cursor, ("copy",)), (Path, ("replace", "unlink")),
        (Folder, ("put", "remove", "open", "copy")), (os, ("fsync",)), (files, ("write", "compare")),
        (manifest, ("keep", "delete_entry", "note_removed", "note_expired")), (ageing, ("_move", "_delete")),
        (forgetting, ("_anonymised_groups",)), (joining, ("_joined_groups",)),
    ):  # fmt: skip
        for name in names:
            counting(owner, name)


def check(task: dict[str, Any], folder: Path) -> None:
    """Check that each record is in the database or in an existing file."""
    with psycopg.connect(task["url"]) as connection:
        for records, expected in task["ids"].items():
            there = connection.execute(f"SELECT id::text FROM {records} WHERE tenant_id = %s", [task["tenant"]])
            stored_ids = {row[0] for row in there}
            paths = connection.execute(
                "SELECT path FROM archive_files WHERE tenant_id = %s AND records = %s AND state = 'kept'",
                [task["tenant"], records],
            )
            for (path,) in paths:
                stored_ids |= set(pq.read_table(folder / path, columns=["id"])["id"].to_pylist())
            lost = set(expected) - stored_ids
            assert not lost, f"{records}: {len(lost)} lost"


if __name__ == "__main__":
    main()
