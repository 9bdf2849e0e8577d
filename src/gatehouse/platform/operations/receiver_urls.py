"""Checks the URL of a receiver before it is saved (docs/webhooks.md, docs/siem.md, docs/alerts.md)."""

from typing import Final
from urllib.parse import urlsplit

from gatehouse.foundation.egress.guard import BlockedAddress, UnsafeUrl
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.platform.request.injected import SplitTransactions

_RULE: Final = "receivers must be on the open internet, or in a network that the operator names in EGRESS_ALLOWLIST"


async def fault(transactions: SplitTransactions, receivers: Receivers, url: str | None, *, kind: str) -> str | None:
    """Return the reason why `url` may not be saved, or None if it may be saved. `kind` is the type of the resource.

    Resolves the name without opening a connection. If the URL leads to a blocked address, its host is recorded in the
    audit chain.
    """
    if url is None:
        return None
    try:
        await receivers.check(url)
    except BlockedAddress as error:
        async with transactions.changing() as change:
            change.record("receiver.refused", kind, outcome="refused", reason=error.reason, host=urlsplit(url).hostname)
        return f"{error.reason}; {_RULE}"
    except UnsafeUrl as error:
        return error.reason
    return None
