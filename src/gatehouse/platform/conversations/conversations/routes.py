"""The conversations' endpoints (decisions 4, Conversations)."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response
from pydantic import BaseModel

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.http.lists import CursorWindow, OffsetWindow, cursor_window, offset_window
from gatehouse.platform.callers import RESPONSES
from gatehouse.platform.conversations.conversations import service, summaries, table
from gatehouse.platform.conversations.conversations.asking import TheModels
from gatehouse.platform.conversations.conversations.errors import ConversationNotFound
from gatehouse.platform.conversations.conversations.owners import OwnerChatter, OwnerReader, OwnerWriter, owner_id
from gatehouse.platform.conversations.conversations.posting import Post
from gatehouse.platform.conversations.conversations.schemas import (
    Conversation,
    ConversationList,
    ConversationUpdate,
    MessagePage,
    NewConversation,
    NewMessage,
    Posted,
    Summary,
)
from gatehouse.platform.conversations.conversations.streaming import Events
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, InParts, Session, loaded

router = APIRouter(prefix="/api/conversations", tags=["Conversations"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
Messages = Annotated[CursorWindow, Depends(cursor_window(default=100, maximum=500))]

_any = loaded(ConversationRow, "conversation_id", ConversationNotFound)


def _read(caller: OwnerReader, row: Annotated[ConversationRow, Depends(_any)]) -> ConversationRow:
    return service.owned(row, caller)


def _written(caller: OwnerWriter, row: Annotated[ConversationRow, Depends(_any)]) -> ConversationRow:
    return service.owned(row, caller)


async def _chatted(caller: OwnerChatter, parts: InParts, conversation_id: Annotated[UUID, Path()]) -> ConversationRow:
    """Without a connection that is held while the model answers."""
    async with parts.reading() as session:
        row = await table.owned(session, conversation_id, owner_id(caller))
    if row is None:
        raise ConversationNotFound
    return row


Read = Annotated[ConversationRow, Depends(_read)]
Written = Annotated[ConversationRow, Depends(_written)]
Chatted = Annotated[ConversationRow, Depends(_chatted)]

#: What the pipeline answers, in the gateway's envelope.
_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": told,
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/GatewayError"},
                        {"$ref": "#/components/schemas/DetailError"},
                        {"$ref": "#/components/schemas/RateLimitedError"},
                        {"$ref": "#/components/schemas/MaintenanceError"},
                    ]
                }
            }
        },
    }
    for status, told in {
        400: "The request is malformed, or the model refuses it.",
        402: "It would cost more than allowed.",
        403: "The credential, a policy rule, a content filter or DLP does not permit it.",
        404: "No such conversation, or no such model.",
        429: "Too many requests; `Retry-After` says when the next one is let in.",
        500: "Unexpected error.",
        502: "No provider answered.",
        503: "Not available now, or closed for maintenance.",
        504: "The provider did not answer in time.",
    }.items()
}
_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "With `stream`: chunks as of chat completions.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post("", status_code=201, response_model=Conversation)
async def create_conversation(
    caller: OwnerWriter, body: NewConversation, change: Changing, models: TheModels, host: TheHost
) -> Conversation:
    """Begins a conversation. Nobody but you sees it."""
    return await service.create(change, host.sealer, models, caller, body)


@router.get("", response_model=ConversationList)
async def list_conversations(caller: OwnerReader, session: Session, window: Window, host: TheHost) -> object:
    """Your conversations; the one that something was said in last stands first."""
    return await service.listed(session, host.sealer, caller, window)


@router.get("/{conversation_id}", response_model=Conversation)
async def read_conversation(caller: OwnerReader, row: Read, session: Session, host: TheHost) -> Conversation:
    """One of your conversations."""
    return await service.shown(session, host.sealer, row)


@router.patch("/{conversation_id}", response_model=Conversation)
async def update_conversation(
    *, caller: OwnerWriter, row: Written, body: ConversationUpdate, change: Changing, models: TheModels, host: TheHost
) -> Conversation:
    """Changes the title, or the model for what is asked from now on."""
    return await service.update(change, host.sealer, models, row, body)


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(caller: OwnerWriter, row: Written, change: Changing) -> None:
    """Removes a conversation for good, with its messages and share links."""
    await service.delete(change, row)


@router.get("/{conversation_id}/messages", response_model=MessagePage)
async def list_messages(
    caller: OwnerReader, row: Read, session: Session, window: Messages, host: TheHost
) -> dict[str, Any]:
    """What was said, oldest first. An answer that runs still is `incomplete`."""
    opened = window.open(host.cursors, {}, context=f"messages:{row.id}")
    return await service.messages(session, host.sealer, row, opened)


@router.post("/{conversation_id}/messages", status_code=201, response_model=Posted, responses=_REFUSALS | _STREAMED)
async def post_message(
    *, caller: OwnerChatter, row: Chatted, body: NewMessage, parts: InParts, models: TheModels, host: TheHost
) -> Response:
    """Asks the model, with as much of the conversation as it has room for, and keeps question and answer.

    The request passes every check of `/v1/chat/completions`; refusals look as they do there, and nothing of a refused
    request is kept."""
    post = await Post.begin(parts, host, models, row, body)
    if body.stream:
        return Events(post.streamed, models.received)
    return _answered(*await post.whole(), 201)


@router.post("/{conversation_id}/summary", response_model=Summary, responses=_REFUSALS)
async def summarize_conversation(
    caller: OwnerChatter, row: Chatted, parts: InParts, models: TheModels, host: TheHost
) -> Response:
    """Has a model sum the conversation up, and keeps what it says with the conversation."""
    return _answered(*await summaries.summarize(parts, host.sealer, models, row), 200)


def _answered(answer: Answer, body: BaseModel | None, status: int) -> Response:
    """The pipeline's own words where it refused; else the body with what the pipeline says in headers."""
    if body is None:
        return Response(answer.body, answer.status, answer.headers)
    headers = {name: value for name, value in answer.headers.items() if name.lower().startswith("x-")}
    return Response(body.model_dump_json(), status, headers, "application/json")
