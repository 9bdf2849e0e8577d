"""Endpoints of conversations."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from gatehouse.engine.exchange import Answer, Received
from gatehouse.foundation.errors import ClientLeft
from gatehouse.foundation.http.lists import (
    CursorWindow,
    OffsetWindow,
    cursor_window,
    offset_window,
    search_parameter,
)
from gatehouse.ingress.gateway import send_over_asgi, while_connected
from gatehouse.platform.conversations.conversations import service, table
from gatehouse.platform.conversations.conversations.calls import summaries
from gatehouse.platform.conversations.conversations.calls.asking import TheModelCaller
from gatehouse.platform.conversations.conversations.calls.posting import Post
from gatehouse.platform.conversations.conversations.errors import ConversationNotFound
from gatehouse.platform.conversations.conversations.owners import OwnerChatter, OwnerReader, OwnerWriter, owner_id
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
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.request.callers import RESPONSES
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/conversations", tags=["Conversations"], responses=RESPONSES)

Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]
MessagesWindow = Annotated[CursorWindow, Depends(cursor_window(default=100, maximum=500))]
Search = Annotated[
    str | None,
    search_parameter(
        "Part of the title, regardless of case. Searches your"
        f" {service.MAX_SEARCHED_CONVERSATIONS:,} most recently used conversations."
    ),
]

_load = loaded(ConversationRow, "conversation_id", ConversationNotFound)


async def _for_reading(caller: OwnerReader, row: Annotated[ConversationRow, Depends(_load)]) -> ConversationRow:
    return service.require_owner(row, caller)


async def _for_writing(caller: OwnerWriter, row: Annotated[ConversationRow, Depends(_load)]) -> ConversationRow:
    return service.require_owner(row, caller)


async def _for_chat(
    caller: OwnerChatter, transactions: InSplitTransactions, conversation_id: Annotated[UUID, Path()]
) -> ConversationRow:
    """Load the row in a transaction of its own, so that no database connection is occupied while the model answers."""
    async with transactions.reading() as session:
        row = await table.owned(session, conversation_id, owner_id(caller))
    if row is None:
        raise ConversationNotFound
    return row


ReadableConversation = Annotated[ConversationRow, Depends(_for_reading)]
WritableConversation = Annotated[ConversationRow, Depends(_for_writing)]
ChatConversation = Annotated[ConversationRow, Depends(_for_chat)]

#: Refusals of the pipeline, in the error format of the gateway.
_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": description,
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
    for status, description in {
        400: "The request is malformed, or the model refuses it.",
        402: "The request would cost more than the cost cap allows.",
        403: "The credential, a policy rule, a content filter or DLP does not permit the request.",
        404: "The conversation or the model does not exist.",
        429: "Too many requests. `Retry-After` is the time until the next one is accepted.",
        500: "Unexpected error.",
        502: "No provider answered.",
        503: "Temporarily unavailable, or closed for maintenance.",
        504: "The provider did not answer in time.",
    }.items()
}
_STREAMED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "With `stream`: chunks of chat completions.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post("", status_code=201, response_model=Conversation)
async def create_conversation(
    caller: OwnerWriter, body: NewConversation, change: Changing, models: TheModelCaller, host: TheHost
) -> Conversation:
    """Creates a conversation. Only you can see it."""
    return await service.create(change, host.sealer, models, caller, body)


@router.get("", response_model=ConversationList)
async def list_conversations(
    caller: OwnerReader, session: Session, window: Window, host: TheHost, search: Search = None
) -> object:
    """Lists your conversations, the most recently used first."""
    return await service.list_page(session, host.sealer, caller, window, search)


@router.get("/{conversation_id}", response_model=Conversation)
async def read_conversation(
    caller: OwnerReader, row: ReadableConversation, session: Session, host: TheHost
) -> Conversation:
    """Returns one of your conversations."""
    return await service.to_shown(session, host.sealer, row)


@router.patch("/{conversation_id}", response_model=Conversation)
async def update_conversation(
    *,
    caller: OwnerWriter,
    row: WritableConversation,
    body: ConversationUpdate,
    change: Changing,
    models: TheModelCaller,
    host: TheHost,
) -> Conversation:
    """Changes the title of a conversation, or the model for its later messages."""
    return await service.update(change, host.sealer, models, row, body)


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(caller: OwnerWriter, row: WritableConversation, change: Changing) -> None:
    """Deletes a conversation permanently, with its messages and share links."""
    await service.delete(change, row)


@router.get("/{conversation_id}/messages", response_model=MessagePage)
async def list_messages(
    caller: OwnerReader, row: ReadableConversation, session: Session, window: MessagesWindow, host: TheHost
) -> dict[str, Any]:
    """Lists the messages, oldest first. An answer that is still being generated has the status `incomplete`."""
    opened = window.open(host.cursors, {}, context=f"messages:{row.id}")
    return await service.messages(session, host.sealer, row, opened)


@router.post("/{conversation_id}/messages", status_code=201, response_model=Posted, responses=_REFUSALS | _STREAMED)
async def post_message(
    *,
    caller: OwnerChatter,
    row: ChatConversation,
    body: NewMessage,
    transactions: InSplitTransactions,
    models: TheModelCaller,
    host: TheHost,
) -> Response:
    """Sends a question to the model, together with the newest messages that fit into its context window. Stores the
    question and the answer.

    The request passes every check of `/v1/chat/completions`. Refusals have the form of that endpoint, and no part of a
    refused request is stored.

    With `replaces`, the new question and its answer take the place of the newest question and its answer. To get
    another answer to the same question, send the question's `content` again."""
    post = await Post.begin(transactions, host, models, row, body)
    if body.stream:
        return _EngineStreamResponse(post.streamed_answer, models.received)
    return _response(*await post.complete_answer(), 201)


@router.post("/{conversation_id}/summary", response_model=Summary, responses=_REFUSALS)
async def summarize_conversation(
    caller: OwnerChatter,
    row: ChatConversation,
    transactions: InSplitTransactions,
    models: TheModelCaller,
    host: TheHost,
) -> Response:
    """Summarizes the conversation with a model, and stores the summary."""
    return _response(*await summaries.summarize(transactions, host.sealer, models, row), 200)


def _response(answer: Answer, body: BaseModel | None, status: int) -> Response:
    """Return the body with the `x-` headers of the pipeline, or the pipeline's refusal if there is no body."""
    if body is None:
        return Response(answer.body, answer.status, answer.headers)
    headers = {name: value for name, value in answer.headers.items() if name.lower().startswith("x-")}
    return Response(body.model_dump_json(), status, headers, "application/json")


class _EngineStreamResponse(Response):
    """Sends the answer that `make` returns, which is a stream or a refusal. `make` and the sending are cancelled if the
    client disconnects, even before the first byte."""

    def __init__(self, make: Callable[[], Awaitable[Answer]], received: Received) -> None:
        super().__init__()
        self._make = make
        self._received = received

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def work() -> None:
            await send_over_asgi(await self._make(), self._received, send)

        body_received = asyncio.Event()
        # Set at once, because FastAPI reads the body of the request before it calls the route.
        body_received.set()
        with contextlib.suppress(ClientLeft):
            await while_connected(scope, receive, body_received, work())
