"""The local journal. A record is written here before its response is complete, and is stored in the database soon
after.

    <GATEHOUSE_HOME>/journal/
        .keeper                 locked by the process that drains the journal
        <writer id>/            directory of one process; a new process uses a new id, never an old directory
            lock                locked (flock) while the writer lives
            00000001.log        a segment: append-only lines, limited in size, deleted when it has been drained
            00000002.log

A line is a CRC, the record and a line break (`framing`). The journal does not parse records and needs no database:
`JournalWriter` serves the request path, `JournalReader` the process that copies records into a database.

To store each record exactly once, a caller stores the rows and positions of a batch in one transaction, and confirms
the batch to the reader after the commit.
"""

from gatehouse.foundation.journal.batch import Backlog, Batch, Damage, JournalEntry, Position
from gatehouse.foundation.journal.framing import MAX_RECORD_BYTES
from gatehouse.foundation.journal.reader import JournalReader
from gatehouse.foundation.journal.writer import JournalFull, JournalUnwritable, JournalWriter, Sync

__all__ = [
    "MAX_RECORD_BYTES",
    "Backlog",
    "Batch",
    "Damage",
    "JournalEntry",
    "JournalFull",
    "JournalReader",
    "JournalUnwritable",
    "JournalWriter",
    "Position",
    "Sync",
]
