"""Errors of conversations."""

from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable


class UsersOnly(Forbidden):
    message = "Only users have conversations. Use a session or a user's API key."


class ConversationNotFound(NotFound):
    message = "Conversation not found"


class ModelNotUsable(Unprocessable):
    """The model does not exist, or the caller may not use it. The message does not distinguish the two cases."""

    def __init__(self, name: str) -> None:
        message = (
            f"model {name[:200]!r} does not exist, or you may not use it: GET /v1/models lists the models that you can"
            " use"
        )
        super().__init__(faults=[FieldFault("model", message)])


class ConversationFull(Conflict):
    code = "conversation_full"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A conversation may have at most {limit} messages (max_conversation_messages). Create a new conversation."
        )


class NotTheNewestQuestion(Unprocessable):
    """The message does not exist, is an answer, or there is a newer question (possibly in progress)."""

    def __init__(self) -> None:
        message = (
            "must be the id of the newest question of the conversation: wait for answers in progress, then GET the"
            " messages to find it"
        )
        super().__init__(faults=[FieldFault("replaces", message)])


class NothingToSummarize(Conflict):
    code = "nothing_to_summarize"
    message = "The conversation has no messages yet."
