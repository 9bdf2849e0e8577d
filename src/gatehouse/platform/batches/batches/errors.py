"""Errors of batches."""

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.foundation.errors import Conflict, NotFound


class BatchNotFound(NotFound):
    code = "batch_not_found"
    message = "No such batch. It may have been deleted after the end of its lifetime."


class InputFileNotFound(InvalidField):
    def __init__(self) -> None:
        super().__init__("input_file_id", "You have no such file with the purpose `batch`.")


class BatchHasEnded(Conflict):
    code = "batch_ended"

    def __init__(self, status: str) -> None:
        super().__init__(f"The batch is {status}, so it cannot be cancelled.")
