"""Encodes a record as a line: eight hexadecimal digits of its CRC-32, the record, a line break.

A line that a kill truncated has no line break; a line that was damaged later has a wrong CRC. The format is text, so
that `tail -f | cut -c9-` shows the records.
"""

import os
from collections.abc import Iterator
from zlib import crc32

#: Records have some hundred bytes. The limit allows a reader to buffer any line.
MAX_RECORD_BYTES = 1024**2
#: bytes of a line in addition to its record
OVERHEAD_BYTES = 9
MAX_LINE_BYTES = MAX_RECORD_BYTES + OVERHEAD_BYTES

_CRC_DIGITS = 8


def frame(record: bytes) -> bytes:
    """Return the record's line with its line break. The record must not have one."""
    return b"%08x%b\n" % (crc32(record), record)


def unframe(line: bytes) -> bytes | None:
    """Return the record of a line without its line break, or None if the CRC is wrong."""
    record = line[_CRC_DIGITS:]
    return record if line[:_CRC_DIGITS] == b"%08x" % crc32(record) else None


def read_lines(descriptor: int, offset: int, *, sealed: bool) -> Iterator[tuple[int, bytes | None, bool]]:
    """Yields each line of a file from `offset`: its end, its record, and whether it is torn.

    The record is None for damaged bytes. A last line without a line break is still being written and is left out,
    unless the file is `sealed`: then it is torn.
    """
    while chunk := os.pread(descriptor, MAX_LINE_BYTES, offset):
        if b"\n" in chunk:
            *lines, _unfinished = chunk.split(b"\n")
            for line in lines:
                offset += len(line) + 1
                yield offset, unframe(line), False
        elif sealed or len(chunk) == MAX_LINE_BYTES:  # longer than any line: damage without a line break
            offset += len(chunk)
            yield offset, None, sealed and len(chunk) < MAX_LINE_BYTES
        else:
            return
