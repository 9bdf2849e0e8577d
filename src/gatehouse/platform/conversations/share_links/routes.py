"""Endpoints of share links."""

from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import RedirectResponse

from gatehouse.administration.etags import TheVersions, without_version
from gatehouse.foundation.http.accepts import prefers_html
from gatehouse.foundation.http.lists import CursorWindow, OptionalWindow, cursor_window, optional_window, windowed
from gatehouse.platform.conversations.conversations import service as conversations
from gatehouse.platform.conversations.conversations.errors import ConversationNotFound
from gatehouse.platform.conversations.conversations.owners import OwnerReader, OwnerWriter
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.conversations.share_links import service, table
from gatehouse.platform.conversations.share_links.schemas import SharedConversation, ShareLink
from gatehouse.platform.conversations.share_links.service import ShareLinkNotFound
from gatehouse.platform.conversations.share_links.table import ShareLinkRow
from gatehouse.platform.request.callers import RESPONSES
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Conversations"])

_BASE = "/api/conversations/{conversation_id}/share_links"

MessagesWindow = Annotated[CursorWindow, Depends(cursor_window(default=200, maximum=500))]

LinksWindow = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]

#: Where the console shows a shared conversation.
_PAGE_PATH: Final = "/console/shared"
_PAGE: Final[dict[int | str, dict[str, Any]]] = {
    303: {"description": "The client prefers HTML: `Location` is the page that shows the conversation."}
}

_load = loaded(ConversationRow, "conversation_id", ConversationNotFound)


async def _for_reading(caller: OwnerReader, row: Annotated[ConversationRow, Depends(_load)]) -> ConversationRow:
    return conversations.require_owner(row, caller)


async def _for_writing(caller: OwnerWriter, row: Annotated[ConversationRow, Depends(_load)]) -> ConversationRow:
    return conversations.require_owner(row, caller)


async def _base_url(request: Request, host: TheHost) -> str:
    return host.settings.public_url or str(request.base_url)


ReadableConversation = Annotated[ConversationRow, Depends(_for_reading)]
WritableConversation = Annotated[ConversationRow, Depends(_for_writing)]


@without_version
async def _link(
    conversation: WritableConversation,
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


@router.get("/api/conversations/shared/{token}", response_model=SharedConversation, responses=_PAGE)
async def read_shared_conversation(
    token: str, window: MessagesWindow, host: TheHost, request: Request, response: Response
) -> object:
    """Returns the title, model and messages of a shared conversation in its current state, oldest message first. Needs
    no credential. Returns 404 if the link is revoked, the conversation is deleted, or its owner is deactivated.

    A client that prefers HTML, such as a browser, is redirected to a page that shows the conversation."""
    response.headers["Vary"] = "Accept"
    if prefers_html(request.headers.get("accept", "")):
        return RedirectResponse(f"{_PAGE_PATH}/{quote(token, safe='')}", 303, headers={"Vary": "Accept"})
    return await service.read(host, token, window)


@router.post(_BASE, status_code=201, response_model=ShareLink, responses=RESPONSES)
async def create_share_link(
    caller: OwnerWriter, conversation: WritableConversation, change: Changing, host: TheHost, base_url: BaseUrl
) -> ShareLink:
    """Creates a link. Everyone with the link can read the conversation, including later messages."""
    return await service.create(change, host.sealer, conversation, base_url)


@router.get(_BASE, response_model=list[ShareLink], responses=RESPONSES)
async def list_share_links(
    caller: OwnerReader,
    conversation: ReadableConversation,
    session: Session,
    *,
    host: TheHost,
    base_url: BaseUrl,
    window: LinksWindow,
    response: Response,
    revoked: Annotated[bool | None, Query(description="Only the revoked links, or only the valid ones.")] = None,
) -> list[ShareLink]:
    """Lists the links of the conversation, including revoked ones, by default all of them, oldest first. The header
    `X-Total-Count` is the number of all links, regardless of `limit` and `offset`."""
    rows = await windowed(session, table.of_conversation(conversation.id, revoked), window, response)
    return service.to_shown(rows, host.sealer, base_url)


@router.delete(_BASE + "/{token_id}", status_code=204, responses=RESPONSES)
async def revoke_share_link(
    caller: OwnerWriter, conversation: WritableConversation, link: Link, change: Changing
) -> None:
    """Revokes a link by its `id` or `token`. Once this response is sent, the link shows nothing."""
    service.revoke(change, link)
