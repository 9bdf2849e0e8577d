"""Reads a provider's metadata from a request's body, or from the URL in it."""

from urllib.parse import urlsplit

from gatehouse.foundation.egress.guard import BlockedAddress, UnsafeUrl
from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.outbound.receivers import ReceiverFailed, Receivers
from gatehouse.platform.access.saml.protocol import idp_metadata
from gatehouse.platform.access.saml.protocol.idp_metadata import BadMetadata, ProviderMetadata
from gatehouse.platform.access.saml.protocol.messages import XML_THREADS
from gatehouse.platform.access.saml.protocol.trust import MAX_BYTES
from gatehouse.platform.access.saml.schemas import MetadataSource
from gatehouse.platform.request.injected import SplitTransactions


async def read(transactions: SplitTransactions, receivers: Receivers, source: MetadataSource) -> ProviderMetadata:
    """Return the identity provider that the metadata describes. Raises `Unprocessable`."""
    field = "xml" if source.url is None else "url"
    raw = (source.xml or "").encode() if source.url is None else await _fetch(transactions, receivers, source.url)
    try:
        return await XML_THREADS.run(lambda: idp_metadata.read(raw))
    except BadMetadata as error:
        raise Unprocessable(faults=[FieldFault(field, f"the metadata {error}")]) from None


async def _fetch(transactions: SplitTransactions, receivers: Receivers, url: str) -> bytes:
    """Return the document at the URL. If the address is blocked, the audit chain records the host."""
    try:
        return await receivers.get(url, max_bytes=MAX_BYTES)
    except BlockedAddress as error:
        async with transactions.changing() as change:
            change.record(
                "receiver.refused", "saml_idp", outcome="refused", reason=error.reason, host=urlsplit(url).hostname
            )
        reason = f"{error.reason}; it must be on the open internet, or in a network of EGRESS_ALLOWLIST"
    except (UnsafeUrl, ReceiverFailed) as error:
        reason = error.reason
    raise Unprocessable(faults=[FieldFault("url", reason)])
