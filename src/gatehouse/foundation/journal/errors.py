"""Errors of the journal, as responses with status 503."""

from gatehouse.foundation.errors import Unavailable


class JournalFull(Unavailable):
    """`JOURNAL_MAX_BYTES` is reached, or records arrive faster than the disk writes them."""

    code = "journal_full"
    message = "The journal is full. The request was not served, because it could not be recorded."


class JournalUnwritable(Unavailable):
    """The operating system refused the write (its `OSError` is the cause), or the journal is closed."""

    code = "journal_unwritable"
    message = "The journal cannot be written. The request was not served, because it could not be recorded."
