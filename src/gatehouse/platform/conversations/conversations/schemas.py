"""Bodies of the conversations' endpoints (decisions 4, Conversations)."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, Shown, unsent

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Rust or Go?"])]
ModelName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description="`provider/model-id`, a bare id (the cheapest of several usable ones), or `auto`.",
        examples=["sandbox/echo"],
    ),
]


class NewConversation(Body):
    title: Annotated[Title | None, Field(description="Omitted: a model makes one after the first answer.")] = None
    model: Annotated[ModelName | None, Field(description="Omitted: your preferred model, else `auto`.")] = None


class ConversationUpdate(Body):
    """Partial: what is left out stays; null takes the title away."""

    title: Title | None = None
    model: Annotated[ModelName, Field(default_factory=unsent)]


class NewMessage(Body):
    # Blanks before a line of code mean something.
    model_config = ConfigDict(str_strip_whitespace=False)

    content: Annotated[str, Field(max_length=1_000_000, pattern=r"\S", examples=["Which is faster?"])]
    stream: Annotated[bool, Field(description="Answer by server-sent events, as chat completions do.")] = False
    model: Annotated[ModelName | None, Field(description="For this answer alone.")] = None


class ModelSnapshot(Shown):
    """The catalog's entry as it was when the model was chosen. It outlives the entry."""

    id: UUID
    provider: str
    model_id: str
    display_name: str | None
    context_window: int | None
    max_output_tokens: int | None


class Conversation(Shown):
    id: UUID
    title: str | None
    model: str
    model_snapshot: Annotated[ModelSnapshot | None, Field(description="Null with the model `auto`.")]
    message_count: int
    summary: str | None
    summarized_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ConversationList(Shown):
    conversations: list[Conversation]
    total: int
    limit: int
    offset: int


class Message(Shown):
    id: UUID
    sequence: Annotated[int, Field(description="Ascending within the conversation.")]
    role: Literal["user", "assistant"]
    status: Annotated[
        Literal["complete", "incomplete"], Field(description="`incomplete`: the answer runs still, or broke off.")
    ]
    content: Annotated[str, Field(description="Labels such as `[EMAIL_1]` stand for what was redacted.")]
    model: Annotated[str | None, Field(description="`provider/model-id` that answered.")]
    finish_reason: Annotated[str | None, Field(examples=["stop"])]
    request_id: Annotated[str | None, Field(description="Of the request's records.")]
    created_at: datetime


class MessagePage(Shown):
    messages: list[Message]
    next_cursor: str | None
    has_more: bool


class Posted(Shown):
    user_message: Message
    assistant_message: Annotated[
        Message, Field(description="Its `content` is as you may read it: labels that can be are turned back.")
    ]


class Summary(Shown):
    summary: str
    model: str
    messages: Annotated[int, Field(description="The newest messages, as many as the model has room for.")]
    summarized_at: datetime
