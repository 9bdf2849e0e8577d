"""Outposts' credentials: tokens certified by the authorities that the portal vouches for (decisions 8, Outposts)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from time import time
from typing import Final
from uuid import UUID

import msgspec
from cryptography.x509 import Certificate

from gatehouse.foundation import certified
from gatehouse.foundation.certified import Certified
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import Caller, CallerKind, TenantId

#: Verified tokens that are remembered: an outpost sends the same one for minutes.
_REMEMBERED: Final = 10_000


class LiveOutpost(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: TenantId


class LiveTrust(msgspec.Struct, frozen=True):
    """Whom the portal vouches for. Replaced whole, never changed."""

    authorities: Sequence[Certificate] = ()
    #: by the serial number of each certificate that is good
    by_serial: Mapping[int, LiveOutpost] = {}


class OutpostTokens:
    """Verifies, and remembers what it has verified as long as the trust is the same. `audience` is this platform."""

    def __init__(self, audience: str) -> None:
        self._audience = audience
        self._verified: OrderedDict[str, Certified] = OrderedDict()
        self._verified_by: LiveTrust | None = None

    def caller(self, token: str, trust: LiveTrust) -> Caller:
        """Raises `Unauthenticated`. That its organization is there is left to whoever asks."""
        if self._verified_by is not trust:
            self._verified.clear()
            self._verified_by = trust
        known = self._verified.get(token)
        if known is None or known.expires_at <= time():
            self._verified.pop(token, None)
            known = self._verified[token] = certified.verify(token, trust.authorities, audience=self._audience)
            if len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)
        outpost = trust.by_serial.get(known.serial)
        # The name in the token is the outpost's own word; that it is the one of its certificate is the portal's.
        if outpost is None or known.subject != str(outpost.id):
            raise Unauthenticated
        return Caller(
            kind=CallerKind.OUTPOST,
            tenant_id=outpost.tenant_id,
            outpost_id=outpost.id,
            rate_limit_tier="premium",
            rate_key=f"outpost:{outpost.id}",
        )


def still_good(caller: Caller, trust: LiveTrust) -> bool:
    """Whether the outpost has any good certificate."""
    return any(each.id == caller.outpost_id and each.tenant_id == caller.tenant_id for each in trust.by_serial.values())
