"""Errors of message batches."""

from gatehouse.foundation.errors import Conflict


class MessageBatchNotEnded(Conflict):
    code = "batch_not_ended"
    message = "The batch has not ended yet. Wait until its processing_status is `ended`, or cancel it."
