"""Bodies of the conversations' endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, omitted

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", examples=["Rust or Go?"])]
ModelName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description="`provider/model-id`, a bare model id (the cheapest of several usable models), or `auto`.",
        examples=["sandbox/echo"],
    ),
]


class NewConversation(Body):
    title: Annotated[
        Title | None,
        Field(
            description="Null in a creation: a model creates a title after the first answer. Null in an update: the"
            " conversation has no title."
        ),
    ] = None
    model: Annotated[ModelName | None, Field(description="Default: your preferred model, or `auto`.")] = None


class ConversationUpdate(NewConversation):
    """A partial update: omitted fields keep their values. A null title removes the title."""

    # Not nullable: an update without this field keeps the model.
    model: Annotated[ModelName, Field(default_factory=omitted)]


class NewMessage(Body):
    # Leading white space is significant, for example in code.
    model_config = ConfigDict(str_strip_whitespace=False)

    content: Annotated[str, Field(max_length=1_000_000, pattern=r"\S", examples=["Which is faster?"])]
    stream: Annotated[bool, Field(description="Answer with server-sent events, as for chat completions.")] = False
    model: Annotated[ModelName | None, Field(description="Model for this answer only.")] = None
    replaces: Annotated[
        Id | None,
        Field(
            description="Id of the newest question. It and its answer are removed when the new answer begins. If the"
            " request is refused, they stay."
        ),
    ] = None


class ModelSnapshot(ResponseBody):
    """A copy of the catalog entry at the time when the model was selected. It is kept if the entry is deleted."""

    id: UUID
    provider: str
    model_id: str
    display_name: str | None
    context_window: int | None
    max_output_tokens: int | None


class Conversation(ResponseBody):
    id: UUID
    title: str | None
    model: str
    model_snapshot: Annotated[ModelSnapshot | None, Field(description="Null with the model `auto`.")]
    message_count: int
    summary: str | None
    summarized_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ConversationList(ResponseBody):
    conversations: list[Conversation]
    total: int
    limit: int
    offset: int


class Message(ResponseBody):
    id: UUID
    sequence: Annotated[int, Field(description="Ascending within the conversation.")]
    role: Literal["user", "assistant"]
    status: Annotated[
        Literal["complete", "incomplete"],
        Field(description="`incomplete`: the answer is still being generated, or was interrupted."),
    ]
    content: Annotated[str, Field(description="Labels such as `[EMAIL_1]` replace redacted values.")]
    model: Annotated[str | None, Field(description="`provider/model-id` of the model that answered.")]
    finish_reason: Annotated[str | None, Field(examples=["stop"])]
    request_id: Annotated[str | None, Field(description="Id of the request in the usage and audit records.")]
    created_at: datetime


class MessagePage(ResponseBody):
    messages: list[Message]
    next_cursor: str | None
    has_more: bool


class Posted(ResponseBody):
    user_message: Message
    assistant_message: Annotated[
        Message, Field(description="In `content`, reversible labels are replaced by their values.")
    ]


class Summary(ResponseBody):
    summary: str
    model: str
    messages: Annotated[
        int,
        Field(
            description="Number of summarized messages: the newest messages that fit into the model's context window."
        ),
    ]
    summarized_at: datetime
