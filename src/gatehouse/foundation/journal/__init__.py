"""The local journal: records are here before an answer is complete, and in the database soon after.

    <GATEHOUSE_HOME>/journal/
        .keeper                 held by the process that drains
        <writer id>/            one living process each; a new process takes a new id, never an old directory
            lock                held (flock) for as long as the writer lives
            00000001.log        lines, appended to; the next segment starts at a size, so that drained ones can go
            00000002.log

A line is a CRC, the record and a line break (`framing`). The journal never looks into a record. Nothing here needs a
database: `JournalWriter` serves the request path, `JournalReader` the process that copies records into one.

Exactly once is a matter of one transaction: the caller stores a batch's rows and its positions together, and confirms
the batch to the reader after the commit. A record that was read twice was then stored once.
"""

from gatehouse.foundation.journal.batch import Backlog, Batch, Damage, Entry, Position
from gatehouse.foundation.journal.errors import JournalFull, JournalUnwritable
from gatehouse.foundation.journal.framing import MAX_RECORD_BYTES
from gatehouse.foundation.journal.reader import JournalReader
from gatehouse.foundation.journal.writer import JournalWriter, Sync

__all__ = [
    "MAX_RECORD_BYTES",
    "Backlog",
    "Batch",
    "Damage",
    "Entry",
    "JournalFull",
    "JournalReader",
    "JournalUnwritable",
    "JournalWriter",
    "Position",
    "Sync",
]
