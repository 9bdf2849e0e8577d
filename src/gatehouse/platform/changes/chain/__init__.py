"""Writes the audit chain. Every change in administration appends events in its own transaction, and the keeper appends
one event for each request of the gateway. `records.audit` reads and verifies the chain.

    actions  the audit actions
    links    the events and their hashes, as pure functions
    table    the rows, and the head of each organization's chain
"""
