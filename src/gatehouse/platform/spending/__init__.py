"""Budgets at work (decisions 7, Budgets; Plan limits).

    accounts   what this worker may spend of a period, has set aside, and has spent
    ledger     PostgreSQL's side: who was granted how much
    spender    the engine's port `Spend` over both
    invoices   what an organization has used, each month

A period's limit is handed out. Each worker holds a lease: it spends from memory, and its lease is never less than what
it has spent and set aside, so that all leases together never pass the limit. A task of its own asks for more ahead of
need, and gives back what it does not need, twice a second; a request that finds the lease too small waits for the next
answer, together with all that wait. So a request costs no query, and near the limit one query serves hundreds.

What a request has spent stands in its journal entry with the periods it counts for, and is stored with it. That is what
a budget shows as spent; and when a worker is gone and its journal stored, its lease becomes just that. What a killed
worker had set aside comes back then; a machine that never comes back keeps its leases until the period ends.
"""
