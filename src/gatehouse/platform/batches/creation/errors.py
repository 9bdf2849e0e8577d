"""Errors of the lines of a new batch."""

from gatehouse.foundation.errors import BadRequest


class InvalidLine(BadRequest):
    """A line of a batch is not valid. `param` identifies the line, and the field in it."""

    code = "invalid_batch_line"

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}", param=place)


class TooManyLines(BadRequest):
    code = "too_many_batch_lines"

    def __init__(self, param: str, limit: int) -> None:
        super().__init__(
            f"A batch may have at most {limit} lines (BATCH_MAX_LINES). Send several batches.", param=param
        )


class EmptyBatch(BadRequest):
    code = "empty_batch"

    def __init__(self, param: str) -> None:
        super().__init__("The batch has no lines. Send at least one.", param=param)
