"""Joins the files of a month, so that an organization with few records does not have thousands of small files.

A file expires with its last record, so the records of a joined file may stay up to a month longer than they would in
separate files. This matters under a policy without a cold window, so files are not joined under such a policy.
"""

from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.platform.records.archive import verifying
from gatehouse.platform.records.archive.storage import files, manifest
from gatehouse.platform.records.archive.storage.contents import RECORDS, Records
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.storage.writer import ArchiveWriter
from gatehouse.platform.records.hot import HotRetention, hot_since

pa: Any = LazyModule("pyarrow")


def join(writer: ArchiveWriter, tenant_id: UUID, policy: HotRetention) -> None:
    """Join the warm files of the organization for months that are completely older than the hot window. Raises `Held`
    and `Unsound`."""
    if not policy.cold_retention_years:
        return
    hot = hot_since(policy, writer.now)
    for records in RECORDS:
        candidates = [
            file
            for file in manifest.list_files(writer.connection, tenant_id, records=records)
            if file.tier == "warm" and file.removed_at is not None and _month(file) < (hot.year, hot.month)
        ]
        for _, month_files in groupby(candidates, key=_month):
            for part in _parts(month_files):
                for file in part:
                    writer.check_stop()
                    verifying.check(writer.sealer, writer.place, file)
                writer.store(tenant_id, records, "warm", partial(_joined_groups, writer, records, part), replaces=part)


def _month(file: ArchiveFile) -> tuple[int, int]:
    last: datetime = file.last_at
    return last.year, last.month


def _parts(month_files: Iterator[ArchiveFile]) -> Iterator[Sequence[ArchiveFile]]:
    """Yield runs of two or more consecutive files that together fit into one file."""
    part: list[ArchiveFile] = []
    for file in month_files:
        rows = sum(previous.rows for previous in part) + file.rows
        if part and not (_follows(part[-1], file) and rows <= files.MAX_FILE_ROWS):
            if len(part) > 1:
                yield part
            part = []
        part.append(file)
    if len(part) > 1:
        yield part


def _follows(before: ArchiveFile, file: ArchiveFile) -> bool:
    """Return whether the files may be joined. A file of audit events must contain an unbroken range of the chain."""
    return before.last_sequence is None or before.last_sequence + 1 == file.first_sequence


def _joined_groups(writer: ArchiveWriter, records: Records, part: Sequence[ArchiveFile]) -> Generator[Any, None, None]:
    """Yield the groups of the files, concatenated up to the usual size of a group."""
    pending: list[Any] = []
    for file in part:
        with writer.place.open(file.path) as source:
            for group in files.read_as(records, source):
                if pending and sum(table.num_rows for table in pending) + group.num_rows > files.GROUP_ROWS:
                    yield pa.concat_tables(pending)
                    pending = []
                pending.append(group)
    if pending:
        yield pa.concat_tables(pending)
