"""A month's files become one: an organization with few records would have thousands of small ones.

A file goes when the time of its last record is over, so records of one that was put together may stay for up to a
month longer than alone. Where that matters, in a policy without a cold window, files stay as they are.
"""

from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from gatehouse.foundation.lazily import Lazily
from gatehouse.platform.records.archive import files, manifest, verifying
from gatehouse.platform.records.archive.contents import RECORDS, Records
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.workshop import Workshop
from gatehouse.platform.records.hot import RetentionPolicy, hot_since

pa: Any = Lazily("pyarrow")


def join(shop: Workshop, tenant_id: UUID, policy: RetentionPolicy) -> None:
    """Of one organization, what is warm and of months of which nothing is hot any more. Raises `Held`, `Unsound`."""
    if not policy.cold_retention_years:
        return
    hot = hot_since(policy, shop.now)
    for records in RECORDS:
        whole = [
            file
            for file in manifest.kept(shop.connection, tenant_id, records=records)
            if file.tier == "warm" and file.removed_at is not None and _month(file) < (hot.year, hot.month)
        ]
        for _, of_month in groupby(whole, key=_month):
            for part in _parts(of_month):
                for file in part:
                    shop.go_on()
                    verifying.check(shop.sealer, shop.place, file)
                shop.store(tenant_id, records, "warm", partial(_together, shop, records, part), instead_of=part)


def _month(file: File) -> tuple[int, int]:
    last: datetime = file.last_at
    return last.year, last.month


def _parts(whole: Iterator[File]) -> Iterator[Sequence[File]]:
    """Files that follow each other, as many as fit into one."""
    part: list[File] = []
    for file in whole:
        if part and not (_follows(part[-1], file) and sum(each.rows for each in part) + file.rows <= files.MOST):
            if len(part) > 1:
                yield part
            part = []
        part.append(file)
    if len(part) > 1:
        yield part


def _follows(before: File, file: File) -> bool:
    """Of audit events: each file is an unbroken stretch of the chain."""
    return before.last_sequence is None or before.last_sequence + 1 == file.first_sequence


def _together(shop: Workshop, records: Records, part: Sequence[File]) -> Generator[Any, None, None]:
    """The files' groups, put together to the size that groups have."""
    held: list[Any] = []
    for file in part:
        with shop.place.open(file.path) as source:
            for group in files.read_as(records, source):
                if held and sum(each.num_rows for each in held) + group.num_rows > files.GROUP:
                    yield pa.concat_tables(held)
                    held = []
                held.append(group)
    if held:
        yield pa.concat_tables(held)
