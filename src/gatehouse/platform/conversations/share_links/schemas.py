"""Bodies of the share links' endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody


class ShareLink(ResponseBody):
    id: UUID
    token: Annotated[str, Field(description="Everyone with this token can read the conversation.")]
    conversation_id: UUID
    created_at: datetime
    revoked: bool
    url: Annotated[str, Field(description="Public URL of the conversation.")]


class SharedMessage(ResponseBody):
    role: Literal["user", "assistant"]
    status: Literal["complete", "incomplete"]
    content: str
    model: str | None
    created_at: datetime


class SharedConversation(ResponseBody):
    """A shared conversation, without data about its owner."""

    title: str | None
    model: str
    created_at: datetime
    updated_at: datetime
    messages: list[SharedMessage]
    next_cursor: str | None
    has_more: bool
