"""Errors of conversations."""

from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable


class UsersOnly(Forbidden):
    message = "A conversation belongs to a person: call with a session or an API key."


class ConversationNotFound(NotFound):
    message = "Conversation not found"


class ModelNotUsable(Unprocessable):
    """The model does not exist, or the caller may not use it. The message does not distinguish these cases."""

    def __init__(self, name: str) -> None:
        message = f"no model {name[:200]!r} that you may use: GET /v1/models lists yours"
        super().__init__(faults=[FieldFault("model", message)])


class ConversationFull(Conflict):
    code = "conversation_full"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A conversation may have {limit} messages (max_conversation_messages). Start another one.")


class NothingToSummarize(Conflict):
    code = "nothing_to_summarize"
    message = "The conversation has no messages yet."
