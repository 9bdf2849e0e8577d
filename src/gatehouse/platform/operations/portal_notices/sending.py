"""Sends queued notices to the portal. The portal authenticates the platform by the signature of a token."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gatehouse.foundation.outbound import OutboundFailed, OutboundRequest
from gatehouse.platform.access.signing import Signer
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.operations.portal_notices import queue
from gatehouse.platform.operations.portal_notices.queue import PortalNotice

#: The type of the token is used only for notices, so that the portal accepts no other token of the platform in its
#: place.
_TOKEN_TYPE: Final = "platform_notice"  # noqa: S105 - a kind, not a token
_TOKEN_SECONDS: Final = 60
_MAX_RESPONSE_BYTES: Final = 64 * 1024


class NoticesNotAccepted(Exception):
    """The portal did not accept the notices. The message is the reason. The notices are due again when the
    lease ends."""


async def send_due(tools: Tools) -> None:
    """Send all notices that are due. Raises `NoticesNotAccepted`."""
    portal = (tools.settings.portal_public_url or "").rstrip("/")
    while portal:
        async with tools.database.service() as session:
            notices = await queue.take(session)
        if not notices:
            return
        await _send(tools, portal, notices)
        async with tools.database.service() as session:
            await queue.done(session, notices)


async def _send(tools: Tools, portal: str, notices: Sequence[PortalNotice]) -> None:
    # The signer is created each time, because the signing key may have been rotated, and notices are rare.
    signer = Signer(
        tools.database, tools.sealer, Replica(), tools.clock, issuer=tools.settings.public_url or "gatehouse"
    )
    token = await signer.sign({"sub": "platform", "token_type": _TOKEN_TYPE}, _TOKEN_SECONDS, audience=portal)
    body = [
        {
            "type": notice.type,
            "tenant_id": notice.tenant_id,
            "subject_id": notice.subject_id,
            "message": notice.message,
        }
        for notice in notices
    ]
    request = OutboundRequest(
        method="POST",
        url=f"{portal}/v1/platform-notices",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        body=msgspec.json.encode({"notices": body}),
    )
    try:
        reply = await tools.outbound.send(request)
        try:
            await reply.read(_MAX_RESPONSE_BYTES)
        finally:
            await reply.close()
    except OutboundFailed as error:
        raise NoticesNotAccepted(f"the portal: {error.reason}") from None
    if reply.status != 200:
        raise NoticesNotAccepted(f"the portal answered with status {reply.status}")
