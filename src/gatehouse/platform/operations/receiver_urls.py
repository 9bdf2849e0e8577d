"""Whether a URL of an organization's receiver may be saved (reference 3, Webhooks, Delivery rules 3; decisions 7)."""

from typing import Final
from urllib.parse import urlsplit

from gatehouse.foundation.egress import BlockedAddress, UnsafeUrl
from gatehouse.foundation.receivers import Receivers
from gatehouse.platform.requests import Apart

_RULE: Final = "receivers must be on the open internet, or in a network that the operator names in EGRESS_ALLOWLIST"


async def fault(parts: Apart, receivers: Receivers, url: str | None, *, kind: str) -> str | None:
    """Why it may not, None where it may. Whoever tries one that leads inside is in the audit chain, with its host;
    `kind` is the resource's type. Looks the name up, and connects to nothing."""
    if url is None:
        return None
    try:
        await receivers.check(url)
    except BlockedAddress as error:
        async with parts.changing() as change:
            change.record("receiver.refused", kind, outcome="refused", reason=error.reason, host=urlsplit(url).hostname)
        return f"{error.reason}; {_RULE}"
    except UnsafeUrl as error:
        return error.reason
    return None
