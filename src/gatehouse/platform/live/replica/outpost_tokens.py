"""Verifies the tokens of outposts. A token contains a certificate of an authority that the portal trusts
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

#: Maximum number of verified tokens in the cache. An outpost sends the same token for minutes.
_MAX_CACHED_TOKENS: Final = 10_000


class LiveOutpost(msgspec.Struct, frozen=True, gc=False):
    """An outpost, and the organization that it belongs to."""

    id: UUID
    tenant_id: TenantId


class LiveTrust(msgspec.Struct, frozen=True):
    """The certificate authorities and outposts that the portal trusts. The object is replaced as a whole and never
    modified."""

    authorities: Sequence[Certificate] = ()
    #: outposts by the serial number of each of their valid certificates
    by_serial: Mapping[int, LiveOutpost] = {}


class OutpostTokens:
    """Verifies the tokens of outposts, and caches the results until the trust changes. `audience` is the name of this
    platform."""

    def __init__(self, audience: str) -> None:
        self._audience = audience
        self._verified: OrderedDict[str, CertifiedToken] = OrderedDict()
        self._verified_by: LiveTrust | None = None

    def caller(self, token: str, trust: LiveTrust) -> Caller:
        """Return the caller of a token. Does not check that the organization exists. Raises `Unauthenticated`."""
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
        # The outpost chose the subject of the token, and the portal assigned the certificate to an outpost. Both must
        # name the same outpost.
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
