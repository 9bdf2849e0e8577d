"""The share links' endpoints (reference 2, Endpoints, Share links; decisions 4, Conversations)."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request

from gatehouse.foundation.http.lists import CursorWindow, cursor_window
from gatehouse.platform.callers import RESPONSES
from gatehouse.platform.conversations.conversations import service as conversations
from gatehouse.platform.conversations.conversations.errors import ConversationNotFound
from gatehouse.platform.conversations.conversations.owners import OwnerReader, OwnerWriter
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.conversations.share_links import service, table
from gatehouse.platform.conversations.share_links.errors import ShareLinkNotFound
from gatehouse.platform.conversations.share_links.schemas import SharedConversation, ShareLink
from gatehouse.platform.conversations.share_links.table import ShareLinkRow
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import Changing, Session, loaded
from gatehouse.platform.versions import TheVersions

router = APIRouter(tags=["Conversations"])

_BASE = "/api/conversations/{conversation_id}/share_links"

Messages = Annotated[CursorWindow, Depends(cursor_window(default=200, maximum=500))]

_any = loaded(ConversationRow, "conversation_id", ConversationNotFound)


def _read(caller: OwnerReader, row: Annotated[ConversationRow, Depends(_any)]) -> ConversationRow:
    return conversations.owned(row, caller)


def _written(caller: OwnerWriter, row: Annotated[ConversationRow, Depends(_any)]) -> ConversationRow:
    return conversations.owned(row, caller)


def _base_url(request: Request, host: TheHost) -> str:
    return host.settings.public_url or str(request.base_url)


Read = Annotated[ConversationRow, Depends(_read)]
Written = Annotated[ConversationRow, Depends(_written)]


async def _link(
    conversation: Written,
    session: Session,
    versions: TheVersions,
    token_id: Annotated[UUID, Path(description="The link's `id`, or its `token`.")],
) -> ShareLinkRow:
    link = await table.for_change(session, conversation.id, token_id)
    if link is None:
        raise ShareLinkNotFound
    versions.about(link, "token_id")
    return link


Link = Annotated[ShareLinkRow, Depends(_link)]
BaseUrl = Annotated[str, Depends(_base_url)]


@router.get("/api/conversations/shared/{token}", response_model=SharedConversation)
async def read_shared_conversation(token: str, window: Messages, host: TheHost) -> dict[str, Any]:
    """What a link shows, without a credential: title, model and messages, oldest first, as they are now. 404 once the
    link is revoked, the conversation deleted, or its owner deactivated."""
    return await service.read(host, token, window)


@router.post(_BASE, status_code=201, response_model=ShareLink, responses=RESPONSES)
async def create_share_link(
    caller: OwnerWriter, conversation: Written, change: Changing, host: TheHost, base_url: BaseUrl
) -> ShareLink:
    """Makes a link with which everybody can read the conversation, now and as it goes on."""
    return await service.create(change, host.sealer, conversation, base_url)


@router.get(_BASE, response_model=list[ShareLink], responses=RESPONSES)
async def list_share_links(
    caller: OwnerReader, conversation: Read, session: Session, host: TheHost, base_url: BaseUrl
) -> list[ShareLink]:
    """All links of the conversation, revoked ones too, oldest first."""
    return await service.listed(session, host.sealer, conversation, base_url)


@router.delete(_BASE + "/{token_id}", status_code=204, responses=RESPONSES)
async def revoke_share_link(caller: OwnerWriter, conversation: Written, link: Link, change: Changing) -> None:
    """Revokes a link, named by its `id` or its `token`: it shows nothing from the answer on."""
    service.revoke(change, link)
