"""One record as one line: eight hexadecimal digits of its CRC-32, the record, a line break.

A line that a kill cut short has no line break; one that was damaged later has a CRC that does not fit. Text on
purpose: `tail -f | cut -c9-` shows the records.
"""

import os
from collections.abc import Iterator
from zlib import crc32

#: A record is some hundred bytes. The bound lets a reader hold any line in one buffer.
MAX_RECORD_BYTES = 1024**2
#: What a line has beside its record.
OVERHEAD = 9
MAX_LINE_BYTES = MAX_RECORD_BYTES + OVERHEAD

_CRC_DIGITS = 8


def frame(record: bytes) -> bytes:
    """The record's line, line break included. The record holds none."""
    return b"%08x%b\n" % (crc32(record), record)


def unframe(line: bytes) -> bytes | None:
    """The record of a line without its line break; None where the CRC says that it is not what was written."""
    record = line[_CRC_DIGITS:]
    return record if line[:_CRC_DIGITS] == b"%08x" % crc32(record) else None


def read_lines(descriptor: int, offset: int, *, sealed: bool) -> Iterator[tuple[int, bytes | None, bool]]:
    """What a file holds from `offset` on: each line's end, its record, and whether it is a torn one.

    The record is None where the bytes are none. A last line without line break is still being written, and left out,
    unless the file is `sealed`: then it is torn.
    """
    while chunk := os.pread(descriptor, MAX_LINE_BYTES, offset):
        if b"\n" in chunk:
            *lines, _unfinished = chunk.split(b"\n")
            for line in lines:
                offset += len(line) + 1
                yield offset, unframe(line), False
        elif sealed or len(chunk) == MAX_LINE_BYTES:  # longer than any line: damage, of which the break is gone
            offset += len(chunk)
            yield offset, None, sealed and len(chunk) < MAX_LINE_BYTES
        else:
            return
