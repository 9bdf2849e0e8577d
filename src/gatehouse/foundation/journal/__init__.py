"""The local journal. Records are written here before a response is complete, and stored in the database soon after.

    <GATEHOUSE_HOME>/journal/
        .keeper                 locked by the process that drains the journal
        <writer id>/            directory of one process; a new process uses a new id, never an old directory
            lock                locked (flock) while the writer lives
            00000001.log        append-only lines; segments have a limited size, so that drained ones can be deleted
            00000002.log

A line is a CRC, the record and a line break (`framing`). The journal does not parse records and needs no database:
`JournalWriter` serves the request path, `JournalReader` the process that copies records into a database.

For exactly-once storage the caller stores a batch's rows and positions in one transaction, and confirms the batch to
the reader after the commit. A record that is read twice is then stored once.
"""

from gatehouse.foundation.journal.batch import Backlog, Batch, Damage, JournalEntry, Position
from gatehouse.foundation.journal.errors import JournalFull, JournalUnwritable
from gatehouse.foundation.journal.framing import MAX_RECORD_BYTES
from gatehouse.foundation.journal.reader import JournalReader
from gatehouse.foundation.journal.writer import JournalWriter, Sync

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
