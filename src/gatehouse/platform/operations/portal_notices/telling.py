"""Tells the portal, which knows the platform by what it signs (decisions 8, Wires)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.foundation.outbound import OutboundFailed, OutboundRequest
from gatehouse.platform.access.signing import Signer
from gatehouse.platform.jobs import Tools
from gatehouse.platform.live.state import Replica
from gatehouse.platform.operations.portal_notices import queue
from gatehouse.platform.operations.portal_notices.queue import Notice

#: For this alone: nothing else that the platform signs is taken for it.
_TOKEN_TYPE: Final = "platform_notice"  # noqa: S105 - a kind, not a token
_TOKEN_SECONDS: Final = 60
_MOST_BYTES: Final = 64 * 1024


class NotTaken(Exception):
    """Why, in a word or two: they are told again in a minute."""


async def tell(tools: Tools) -> None:
    """All that is due. Raises `NotTaken`."""
    portal = (tools.settings.portal_public_url or "").rstrip("/")
    while portal:
        async with tools.database.service() as session:
            notices = await queue.take(session)
        if not notices:
            return
        await _send(tools, portal, notices)
        async with tools.database.service() as session:
            await queue.done(session, notices)


async def _send(tools: Tools, portal: str, notices: Sequence[Notice]) -> None:
    # Made anew: the key that signs may be another one by now, and notices are rare.
    signer = Signer(
        tools.database, tools.sealer, Replica(), tools.clock, issuer=tools.settings.public_url or "gatehouse"
    )
    token = await signer.sign({"sub": "platform", "token_type": _TOKEN_TYPE}, _TOKEN_SECONDS, audience=portal)
    told = [
        {"type": each.type, "tenant_id": each.tenant_id, "subject_id": each.subject_id, "message": each.message}
        for each in notices
    ]
    request = OutboundRequest(
        method="POST",
        url=f"{portal}/v1/platform-notices",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        body=msgspec.json.encode({"notices": told}),
    )
    try:
        reply = await tools.outbound.send(request)
        try:
            await reply.read(_MOST_BYTES)
        finally:
            await reply.close()
    except OutboundFailed as failed:
        raise NotTaken(f"the portal: {failed.reason}") from None
    if reply.status != 200:
        raise NotTaken(f"the portal answers {reply.status}")
