"""Enforces budgets and plan limits (docs/budgets.md).

    accounts   this worker's lease, reservations and spending of a period
    ledger     the leases in PostgreSQL
    spender    the engine's port `Spend`, on top of both
    invoices   an organization's usage of a month
    beginning  what a new budget's period starts with

A period's limit is distributed in leases. Each worker spends from its lease in memory. A lease is never less than what
its worker has spent and reserved, so all leases together never exceed the limit. Twice a second, a background task
requests more before it is needed, and returns what is not needed. A request for which the lease is too small waits for
the next answer, together with all others that wait. So a request costs no query, and near the limit one query serves
hundreds of requests.

What a request has spent is in its journal entry, with the periods that it counts for, and is stored with it. Budgets
show these sums as spent. Once a worker is gone and its journal is stored, its lease is reduced to this sum: what a
killed worker had reserved becomes available again. A machine that never returns keeps its leases until the period ends.
"""
