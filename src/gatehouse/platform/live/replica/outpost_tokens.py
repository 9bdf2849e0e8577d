"""Verification of outposts' tokens, which carry a certificate of an authority that the portal trusts
(docs/outpost-protocol.md)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from time import time
from typing import Final
from uuid import UUID

import msgspec
from cryptography.x509 import Certificate

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.certificates.x5c import CertifiedToken
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import Caller, CallerKind, TenantId

#: Verified tokens in the cache. An outpost sends the same token for minutes.
_MAX_CACHED_TOKENS: Final = 10_000


class LiveOutpost(msgspec.Struct, frozen=True, gc=False):
    """An outpost and the organization that it belongs to."""

    id: UUID
    tenant_id: TenantId


class LiveTrust(msgspec.Struct, frozen=True):
    """The certificate authorities and outposts that the portal trusts. Replaced as a whole, never modified."""

    authorities: Sequence[Certificate] = ()
    #: by the serial number of each valid certificate
    by_serial: Mapping[int, LiveOutpost] = {}


class OutpostTokens:
    """Verifies outposts' tokens and caches the results until the trust changes. `audience` is this platform's name."""

    def __init__(self, audience: str) -> None:
        self._audience = audience
        self._verified: OrderedDict[str, CertifiedToken] = OrderedDict()
        self._verified_by: LiveTrust | None = None

    def caller(self, token: str, trust: LiveTrust) -> Caller:
        """Return the token's caller. Raises `Unauthenticated`. It does not check that the organization exists."""
        if self._verified_by is not trust:
            self._verified.clear()
            self._verified_by = trust
        verified = self._verified.get(token)
        if verified is None or verified.expires_at <= time():
            self._verified.pop(token, None)
            verified = self._verified[token] = x5c.verify(token, trust.authorities, audience=self._audience)
            if len(self._verified) > _MAX_CACHED_TOKENS:
                self._verified.popitem(last=False)
        outpost = trust.by_serial.get(verified.serial)
        # The outpost chose the token's subject; the portal assigned the certificate to an outpost. Both must agree.
        if outpost is None or verified.subject != str(outpost.id):
            raise Unauthenticated
        return Caller(
            kind=CallerKind.OUTPOST,
            tenant_id=outpost.tenant_id,
            outpost_id=outpost.id,
            rate_limit_tier="premium",
            rate_key=f"outpost:{outpost.id}",
        )


def still_good(caller: Caller, trust: LiveTrust) -> bool:
    """Return whether the outpost still has a valid certificate."""
    return any(
        outpost.id == caller.outpost_id and outpost.tenant_id == caller.tenant_id
        for outpost in trust.by_serial.values()
    )
