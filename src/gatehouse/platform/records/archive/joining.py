"""Joins the files of a month, so that an organization with few records does not have thousands of small files.

A file is deleted when its newest record expires. In a joined file, older records can therefore be kept up to a month
longer. If the policy has no cold window, files are not joined, so that records are not kept longer than the policy
states.
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
    """Join the warm files of the organization for months that are completely older than the hot window. Raises
    `UnderLegalHold` and `DamagedFile`."""
    if not policy.cold_retention_years:
        return
    hot_start = hot_since(policy, writer.now)
    for record_type in RECORDS:
        candidates = [
            file
            for file in manifest.list_files(writer.connection, tenant_id, records=record_type)
            if file.tier == "warm" and file.is_only_in_archive and _month(file) < (hot_start.year, hot_start.month)
        ]
        for _, month_files in groupby(candidates, key=_month):
            for batch in _batches(month_files):
                for file in batch:
                    writer.check_stop()
                    verifying.check(writer.sealer, writer.storage, file)
                joined_groups = partial(_joined_groups, writer, record_type, batch)
                writer.store(tenant_id, record_type, "warm", joined_groups, replaces=batch)


def _month(file: ArchiveFile) -> tuple[int, int]:
    last: datetime = file.last_at
    return last.year, last.month


def _batches(month_files: Iterator[ArchiveFile]) -> Iterator[Sequence[ArchiveFile]]:
    """Yield runs of two or more consecutive files that together fit into one file."""
    batch: list[ArchiveFile] = []
    for file in month_files:
        rows = sum(previous.rows for previous in batch) + file.rows
        if batch and not (_can_join(batch[-1], file) and rows <= files.MAX_FILE_ROWS):
            if len(batch) > 1:
                yield batch
            batch = []
        batch.append(file)
    if len(batch) > 1:
        yield batch


def _can_join(previous: ArchiveFile, file: ArchiveFile) -> bool:
    """Return whether the files may be joined. A file of audit events must contain an unbroken range of the chain."""
    return previous.last_sequence is None or previous.last_sequence + 1 == file.first_sequence


def _joined_groups(
    writer: ArchiveWriter, record_type: Records, batch: Sequence[ArchiveFile]
) -> Generator[Any, None, None]:
    """Yield row groups of the files. Consecutive groups are merged up to `GROUP_ROWS` rows."""
    pending: list[Any] = []
    for file in batch:
        with writer.storage.open(file.path) as source:
            for group in files.read_as(record_type, source):
                if pending and sum(table.num_rows for table in pending) + group.num_rows > files.GROUP_ROWS:
                    yield pa.concat_tables(pending)
                    pending = []
                pending.append(group)
    if pending:
        yield pa.concat_tables(pending)
