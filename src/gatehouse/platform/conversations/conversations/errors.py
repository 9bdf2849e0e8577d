"""What can go wrong with conversations."""

from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable


class PeopleOnly(Forbidden):
    message = "A conversation belongs to a person: call with a session or an API key."


class ConversationNotFound(NotFound):
    message = "Conversation not found"


class ModelNotUsable(Unprocessable):
    """The same words whether there is no such model or the caller may not use it."""

    def __init__(self, name: str) -> None:
        told = f"no model {name[:200]!r} that you may use: GET /v1/models lists yours"
        super().__init__(faults=[FieldFault("model", told)])


class ConversationFull(Conflict):
    code = "conversation_full"

    def __init__(self, most: int) -> None:
        super().__init__(f"A conversation may have {most} messages (max_conversation_messages). Start another one.")


class NothingToSummarize(Conflict):
    code = "nothing_to_summarize"
    message = "The conversation has no messages yet."
