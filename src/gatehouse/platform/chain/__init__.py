"""The audit chain as it is written: every change of administration adds to it in its own transaction, and the drain for
each request. Reading and verifying it is `records.audit`'s.

    actions  what there is to record
    links    the events and how one follows from another, as pure functions
    table    the rows, and the end of each organization's chain
"""
