"""Parquet files, written and read back a group of rows at a time: memory does not grow with them."""

import hashlib
from collections.abc import Generator, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from gatehouse.foundation.lazily import Lazily
from gatehouse.platform.records.archive.contents import Records, csv_types, names, schema, selection
from gatehouse.platform.records.archive.manifest import Connection

pa: Any = Lazily("pyarrow")
csv: Any = Lazily("pyarrow.csv")
parquet: Any = Lazily("pyarrow.parquet")

#: Rows of one file.
MOST: Final = 200_000
#: Rows in memory at a time.
GROUP: Final = 20_000
_PIECE: Final = 8 * 1024**2


class DifferentRows(Exception):
    """A file does not hold what it was made of."""


def from_database(
    connection: Connection, records: Records, which: str, values: dict[str, Any]
) -> Generator[Any, None, None]:
    """Groups (`pyarrow.Table`) of the rows for which the SQL `which` is, with its order."""
    query = f"COPY (SELECT {selection(records)} FROM {records} WHERE {which}) TO STDOUT (FORMAT csv)"  # noqa: S608
    read = csv.ReadOptions(column_names=names(records), use_threads=False, block_size=_PIECE * 16)
    parsed = csv.ParseOptions(newlines_in_values=True)
    convert = csv.ConvertOptions(
        column_types=csv_types(records), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
        true_values=["t"], false_values=["f"],
    )  # fmt: skip
    wanted = schema(records)

    def table(lines: list[bytes]) -> Any:
        text = BytesIO(b"".join(lines))
        return csv.read_csv(text, read_options=read, parse_options=parsed, convert_options=convert).cast(wanted)

    with connection.cursor() as cursor, cursor.copy(query, values) as copy:
        lines: list[bytes] = []
        # PostgreSQL sends a row at a time.
        for line in copy:
            lines.append(bytes(line))
            if len(lines) == GROUP:
                yield table(lines)
                lines = []
        if lines:
            yield table(lines)


def write(target: Path, records: Records, groups: Iterable[Any]) -> int:
    """How many rows it got."""
    rows = 0
    with parquet.ParquetWriter(target, schema(records), compression="zstd", write_statistics=True) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def read(source: Any) -> Iterator[Any]:
    """A file's groups. Raises `pyarrow.ArrowInvalid` where it is none."""
    file = parquet.ParquetFile(source)
    for number in range(file.num_row_groups):
        yield file.read_row_group(number, use_threads=False)


def read_as(records: Records, source: Any) -> Iterator[Any]:
    """A file's groups with the columns of the current schema: those that the file does not have are null."""
    current = schema(records)
    for group in read(source):
        names, rows = set(group.column_names), group.num_rows
        arrays = [group[field.name] if field.name in names else pa.nulls(rows, field.type) for field in current]
        yield pa.Table.from_arrays(arrays, schema=current)


def columns(source: Any, *names: str) -> Iterator[Any]:
    """The same with some columns alone."""
    file = parquet.ParquetFile(source)
    for number in range(file.num_row_groups):
        yield file.read_row_group(number, columns=list(names), use_threads=False)


def compare(source: Any, groups: Iterable[Any]) -> int:
    """How many rows the file has, which are those. Raises `DifferentRows`."""
    rows, written = 0, read(source)
    for group in groups:
        if not group.equals(next(written, None)):
            raise DifferentRows(f"the rows after the first {rows} differ from those that were to be archived")
        rows += group.num_rows
    if next(written, None) is not None:
        raise DifferentRows(f"there are more than the {rows} rows that were to be archived")
    return rows


def digest(source: Any) -> tuple[int, str]:
    """Bytes, and their SHA-256."""
    held, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        held.update(piece)
        size += len(piece)
    return size, held.hexdigest()
