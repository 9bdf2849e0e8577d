"""Errors of conversations."""

from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable


class UsersOnly(Forbidden):
    message = "Conversations belong to users: use a session or an API key of a user."


class ConversationNotFound(NotFound):
    message = "Conversation not found"


class ModelNotUsable(Unprocessable):
    """The model does not exist, or the caller may not use it. The message does not distinguish the two cases."""

    def __init__(self, name: str) -> None:
        message = f"no model {name[:200]!r} that you may use: GET /v1/models lists yours"
        super().__init__(faults=[FieldFault("model", message)])


class ConversationFull(Conflict):
    code = "conversation_full"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A conversation may have at most {limit} messages (max_conversation_messages). Create a new conversation."
        )


class NotTheNewestQuestion(Unprocessable):
    """The message does not exist, is an answer, or a later question follows it."""

    def __init__(self) -> None:
        message = "it is not the id of the newest question: GET the messages of the conversation, and send its id"
        super().__init__(faults=[FieldFault("replaces", message)])


class NothingToSummarize(Conflict):
    code = "nothing_to_summarize"
    message = "The conversation has no messages yet."
