"""Formats the result of a query for standard output."""

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

_encode = msgspec.json.Encoder(decimal_format="number").encode


def as_csv(batches: Iterator[Any]) -> Iterator[str]:
    """Yield CSV (RFC 4180) with a header line. Null is an empty field."""
    for number, batch in enumerate(batches):
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if number == 0:
            writer.writerow(batch.schema.names)
        writer.writerows([_plain(value) for value in row] for row in _rows(batch))
        yield out.getvalue()


def as_json(batches: Iterator[Any]) -> Iterator[str]:
    """Yield one JSON object per line."""
    for batch in batches:
        names = batch.schema.names
        for row in _rows(batch):
            yield _encode(dict(zip(names, row, strict=True))).decode() + "\n"


def as_table(batches: Iterator[Any]) -> Iterator[str]:
    """Yield aligned columns with a header."""
    for number, batch in enumerate(batches):
        rows = [["" if value is None else str(_plain(value)) for value in row] for row in _rows(batch)]
        names = list(batch.schema.names)
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [names, ["-" * width for width in widths], *rows] if number == 0 else rows
        for row in lines:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"


FORMS: Final[dict[str, Callable[[Iterator[Any]], Iterator[str]]]] = {"table": as_table, "csv": as_csv, "json": as_json}


def _rows(batch: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _plain(value: Any) -> Any:
    """Return the value of one cell in printable form."""
    if isinstance(value, list | dict):
        return _encode(value).decode()
    return msgspec.to_builtins(value)
