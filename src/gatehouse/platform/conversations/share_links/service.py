"""Creates, lists, reads and revokes share links."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import uuid4

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.lists import CursorWindow
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.conversations.conversations import service as conversations
from gatehouse.platform.conversations.conversations.table import ConversationRow
from gatehouse.platform.conversations.share_links import table
from gatehouse.platform.conversations.share_links.schemas import ShareLink
from gatehouse.platform.conversations.share_links.table import ShareLinkRow
from gatehouse.platform.request.ports import Host

#: Path of the page that a link leads to, below the base URL of the platform.
SHARED_PATH: Final = "/api/conversations/shared"

_MAX_LINKS: Final = 1_000


class ShareLinkNotFound(NotFound):
    """The link does not exist, it is revoked, or its owner was deactivated. The message does not distinguish these
    cases."""

    message = "Share link not found"


class TooManyShareLinks(Conflict):
    code = "too_many_share_links"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A conversation may have at most {limit} share links, including revoked links.")


def token_context(link_id: object) -> bytes:
    """Return the context under which a token is sealed."""
    return f"share_link:{link_id}".encode()


async def create(change: Change, sealer: Sealer, conversation: ConversationRow, base_url: str) -> ShareLink:
    """Create a link. The caller must have locked the conversation. Raises `TooManyShareLinks`."""
    await require_room(
        change.session,
        ScopedLock.SHARE_LINKS,
        partial(table.count, conversation_id=conversation.id),
        limit=_MAX_LINKS,
        full=partial(TooManyShareLinks, _MAX_LINKS),
        scope=conversation.id,
    )
    token, link_id = str(uuid4()), new_id()
    row = ShareLinkRow(
        id=link_id,
        tenant_id=conversation.tenant_id,
        conversation_id=conversation.id,
        sealed_token=sealer.seal(token.encode(), context=token_context(link_id)),
        digest=tokens.digest(token),
        revoked=False,
        created_at=utc_now(),
    )
    change.session.add(row)
    change.record("share_link.created", "share_link", row.id, conversation_id=conversation.id)
    return _link_with_url(row, token, base_url)


def to_shown(rows: Sequence[ShareLinkRow], sealer: Sealer, base_url: str) -> list[ShareLink]:
    return [_link_with_url(row, _token(sealer, row), base_url) for row in rows]


def revoke(change: Change, link: ShareLinkRow) -> None:
    if not link.revoked:
        link.revoked = True
        change.record("share_link.revoked", "share_link", link.id, conversation_id=link.conversation_id)


async def read(host: Host, token: str, window: CursorWindow) -> dict[str, Any]:
    """Return the title, model and messages of a shared conversation. Raises `ShareLinkNotFound` and `BadCursor`."""
    async with host.database.service() as session:
        link = await table.find_active(session, tokens.digest(token))
    if link is None:
        raise ShareLinkNotFound
    async with host.database.tenant(link.tenant_id) as session:
        conversation = await session.get(ConversationRow, link.conversation_id)
        if conversation is None:
            raise ShareLinkNotFound
        opened = window.open(host.cursors, {}, context=f"shared:{link.link_id}")
        shown = await conversations.to_shown(session, host.sealer, conversation)
        page = await conversations.messages(session, host.sealer, conversation, opened)
    return shown.model_dump(include={"title", "model", "created_at", "updated_at"}) | page


def _token(sealer: Sealer, row: ShareLinkRow) -> str:
    return sealer.open(row.sealed_token, context=token_context(row.id)).decode()


def _link_with_url(row: ShareLinkRow, token: str, base_url: str) -> ShareLink:
    return ShareLink(
        id=row.id,
        token=token,
        conversation_id=row.conversation_id,
        created_at=row.created_at,
        revoked=row.revoked,
        url=f"{base_url.rstrip('/')}{SHARED_PATH}/{token}",
    )
