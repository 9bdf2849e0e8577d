"""One record as one line: eight hexadecimal digits of its CRC-32, the record, a line break.

A line that a kill cut short has no line break; one that was damaged later has a CRC that does not fit. Text on
purpose: `tail -f | cut -c9-` shows the records.
"""

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
