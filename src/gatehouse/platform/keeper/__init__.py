"""The keeper: one process per machine. It stores the journals of the machine's workers in the database, and runs jobs.

    process       starts and stops the keeper
    drain         the loop: one transaction for each batch, retries with backoff, handling of bad records
    prepare       converts the entries of a batch into rows, without the database
    dlp           DLP findings in a batch
    rollups       totals of the requests in a batch
    samples       rows of sampled requests
    store         the transaction that stores a batch
    duties        scheduled and queued jobs; they run here if the database is embedded, else in `gatehouse worker`
    housekeeping  jobs that delete old rows

The record of a request is in the journal before its response is complete. The keeper stores it in the database about a
tenth of a second later. The keeper may be killed at any moment, because the rows of a batch and the new positions in
the journals are stored in one transaction.
"""

from gatehouse.platform.keeper.process import run

__all__ = ["run"]
