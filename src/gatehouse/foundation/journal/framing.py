"""Encodes a record as a line: its CRC-32 as eight hexadecimal digits, the record, a line break.

If the process was killed while it wrote a line, the line has no line break. A line that was damaged later has a wrong
CRC. The format is text, so that `tail -f | cut -c9-` shows the records.
"""

import os
from collections.abc import Iterator
from zlib import crc32

#: Maximum size of a record. Most records have some hundred bytes. The limit allows a reader to buffer any line.
MAX_RECORD_BYTES = 1024**2
#: bytes of a line in addition to its record
OVERHEAD_BYTES = 9
MAX_LINE_BYTES = MAX_RECORD_BYTES + OVERHEAD_BYTES

_CRC_DIGITS = 8


def frame(record: bytes) -> bytes:
    """Returns the line of a record, with the line break. The record must not contain a line break."""
    return b"%08x%b\n" % (crc32(record), record)


def unframe(line: bytes) -> bytes | None:
    """Returns the record of a line, or None if the CRC is wrong. `line` has no line break."""
    record = line[_CRC_DIGITS:]
    return record if line[:_CRC_DIGITS] == b"%08x" % crc32(record) else None


def read_lines(descriptor: int, offset: int, *, sealed: bool) -> Iterator[tuple[int, bytes | None, bool]]:
    """Yields for each line of a file from `offset` on: the offset of its end, its record, and whether it is torn.

    The record is None for damaged bytes. If the last line has no line break and the file is `sealed`, the line is torn.
    If the file is not sealed, the line is still being written and is left out.
    """
    while chunk := os.pread(descriptor, MAX_LINE_BYTES, offset):
        if b"\n" in chunk:
            *lines, _unfinished = chunk.split(b"\n")
            for line in lines:
                offset += len(line) + 1
                yield offset, unframe(line), False
        elif sealed or len(chunk) == MAX_LINE_BYTES:  # a full chunk without a line break is longer than any valid line
            offset += len(chunk)
            yield offset, None, sealed and len(chunk) < MAX_LINE_BYTES
        else:
            return
