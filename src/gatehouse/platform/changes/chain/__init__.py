"""Writing the audit chain. Every administration change appends events in its own transaction, and the drain appends one
for each request. `records.audit` reads and verifies the chain.

    actions  the audit actions
    links    the events and their hashes, as pure functions
    table    the rows, and the head of each organization's chain
"""
