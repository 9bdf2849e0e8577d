"""The keeper: one process per machine that stores the journals of its gateways in the database, and runs jobs.

    process       starts and stops the keeper
    drain         the loop: a batch per transaction, retries with backoff, handling of bad records
    prepare       converts a batch's entries into rows, without the database
    dlp           detection's findings in a batch
    minutes       totals by the minute in which the requests ended: for alerts
    days          totals by day and route: for analytics
    models        totals by day and model: for the model registry
    spent         totals by budget
    samples       rows of sampled requests
    store         the transaction that stores a batch
    work          scheduled and queued jobs, here if the database is embedded, else in `gatehouse worker`
    housekeeping  jobs that delete old rows

A request's record is in the journal before its response is complete; the keeper makes it visible a tenth of a second
later. It may be killed at any moment: rows and positions are stored in one transaction.
"""

from gatehouse.platform.keeper.process import run

__all__ = ["run"]
