"""Errors of the journal. Both are 503 in the gateway's envelope."""

from gatehouse.foundation.errors import Unavailable


class JournalFull(Unavailable):
    """`JOURNAL_MAX_BYTES` is reached, or records arrive faster than the disk writes them."""

    code = "journal_full"
    message = "The journal is full: no request is served that could not be recorded."


class JournalUnwritable(Unavailable):
    """The operating system refused the write (its `OSError` is the cause), or the journal is closed."""

    code = "journal_unwritable"
    message = "The journal cannot be written: no request is served that could not be recorded."
