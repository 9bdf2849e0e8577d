"""Reads and writes Parquet files by row groups, so that the memory in use does not grow with the size of a file."""

import hashlib
from collections.abc import Generator, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.platform.records.archive.storage.contents import (
    Records,
    csv_types,
    names,
    schema,
    selection,
)
from gatehouse.platform.records.archive.storage.manifest import Connection

pa: Any = LazyModule("pyarrow")
csv: Any = LazyModule("pyarrow.csv")
parquet: Any = LazyModule("pyarrow.parquet")

MAX_FILE_ROWS: Final = 200_000
#: Number of rows in a row group, which is also the number of rows in memory at a time.
GROUP_ROWS: Final = 20_000
_CHUNK_BYTES: Final = 8 * 1024**2


class DifferentRows(Exception):
    """A file differs from the rows that were written to it."""


def from_database(
    connection: Connection, records: Records, condition: str, values: dict[str, Any]
) -> Generator[Any, None, None]:
    """Yield groups (`pyarrow.Table`) of the rows that match the SQL `condition`. The condition also contains their
    order."""
    query = f"COPY (SELECT {selection(records)} FROM {records} WHERE {condition}) TO STDOUT (FORMAT csv)"  # noqa: S608
    read = csv.ReadOptions(column_names=names(records), use_threads=False, block_size=_CHUNK_BYTES * 16)
    parsed = csv.ParseOptions(newlines_in_values=True)
    convert = csv.ConvertOptions(
        column_types=csv_types(records), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
        true_values=["t"], false_values=["f"],
    )  # fmt: skip
    target_schema = schema(records)

    def table(lines: list[bytes]) -> Any:
        text = BytesIO(b"".join(lines))
        return csv.read_csv(text, read_options=read, parse_options=parsed, convert_options=convert).cast(target_schema)

    with connection.cursor() as cursor, cursor.copy(query, values) as copy:
        lines: list[bytes] = []
        # PostgreSQL sends each row in one message.
        for line in copy:
            lines.append(bytes(line))
            if len(lines) == GROUP_ROWS:
                yield table(lines)
                lines = []
        if lines:
            yield table(lines)


def write(target: Path, records: Records, groups: Iterable[Any]) -> int:
    """Write the groups to a file. Returns the number of rows."""
    rows = 0
    with parquet.ParquetWriter(target, schema(records), compression="zstd", write_statistics=True) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def read(source: Any) -> Iterator[Any]:
    """Yield the groups of a file. Raises `pyarrow.ArrowInvalid` if the file is not a Parquet file."""
    file = parquet.ParquetFile(source)
    for number in range(file.num_row_groups):
        yield file.read_row_group(number, use_threads=False)


def read_as(records: Records, source: Any) -> Iterator[Any]:
    """Yield the groups of a file in the current schema. Columns that the file lacks are filled with null."""
    current = schema(records)
    for group in read(source):
        names, rows = set(group.column_names), group.num_rows
        arrays = [group[field.name] if field.name in names else pa.nulls(rows, field.type) for field in current]
        yield pa.Table.from_arrays(arrays, schema=current)


def columns(source: Any, *names: str) -> Iterator[Any]:
    """Yield the groups of a file with only the named columns."""
    file = parquet.ParquetFile(source)
    for number in range(file.num_row_groups):
        yield file.read_row_group(number, columns=list(names), use_threads=False)


def compare(source: Any, groups: Iterable[Any]) -> int:
    """Compare the file with the groups. Returns the number of rows. Raises `DifferentRows`."""
    rows, file_groups = 0, read(source)
    for group in groups:
        if not group.equals(next(file_groups, None)):
            raise DifferentRows(f"the rows after the first {rows} differ from the rows to archive")
        rows += group.num_rows
    if next(file_groups, None) is not None:
        raise DifferentRows(f"the file has more than the {rows} rows to archive")
    return rows


def digest(source: Any) -> tuple[int, str]:
    """Return the size in bytes and the SHA-256 digest in hexadecimal."""
    sha256, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK_BYTES):
        sha256.update(chunk)
        size += len(chunk)
    return size, sha256.hexdigest()
