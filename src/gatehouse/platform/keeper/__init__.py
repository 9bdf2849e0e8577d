"""The keeper: one process a machine that follows the journals of its gateways into the database, and works on jobs.

    process       starts and ends it
    drain         the loop: a batch, a transaction, and what to do when the database is away or a record is bad
    prepare       what a batch's entries become, as far as that needs no database
    dlp           what detection found in a batch's requests
    minutes       its requests by the minute in which they ended: for alerts
    days          ... by day and by what they were routed to: for analytics
    models        ... by day and model: for the model registry
    spent         ... by budget
    store         the one transaction of a batch
    work          scheduled and queued jobs, here when embedded, else in `gatehouse worker`
    housekeeping  jobs that keep the tables small

A request's record is in the journal before its answer is complete; the keeper is what makes it visible, a tenth of a
second later. It may be killed at any moment: rows and positions are stored in one transaction.
"""

from gatehouse.platform.keeper.process import run

__all__ = ["run"]
