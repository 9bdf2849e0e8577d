"""Errors of batches."""

from gatehouse.foundation.errors import Conflict, NotFound


class BatchNotFound(NotFound):
    code = "batch_not_found"
    message = "No such batch. It may have been deleted after the end of its lifetime."


class BatchHasEnded(Conflict):
    code = "batch_ended"

    def __init__(self, status: str) -> None:
        super().__init__(f"The batch is {status}, so it cannot be cancelled.")
