"""Enforces budgets and the limits of plans (docs/budgets.md).

    accounts   this worker's lease, reservations and spending in a period
    ledger     the leases in PostgreSQL
    spender    the engine's port `Spend`, which uses both
    invoices   an organization's usage in a month
    beginning  the recorded usage with which a new budget starts

The limit of a period is distributed in leases. Each worker spends from its lease in memory. A lease covers all that its
worker has spent and reserved. If the budget blocks, the ledger enlarges leases for requests only while all leases
together stay within the limit, so the limit holds. Twice a second, a background task requests more before it is needed,
and returns amounts that are not needed. A request for which the lease is too small waits for the next answer of the
ledger, together with all other waiting requests. So a request costs no query, and near the limit one query serves
hundreds of requests.

The journal entry of a request contains the amount that the request has spent, and the periods for which it counts. The
amount is stored together with the entry. Budgets show the sums of these amounts as spent. Once a worker has ended and
its journal is stored, its lease is reduced to the sum of its own entries, so the amount that a killed worker had
reserved becomes available again. A machine that never returns keeps its leases until the period ends.
"""
