"""Implementations of the engine's ports that read the live state."""

from collections import OrderedDict
from collections.abc import Awaitable, Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.engine.stages.callers.maintenance import InMaintenance
from gatehouse.foundation.errors import Refusal, Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.live.replica.feed import Feed
from gatehouse.platform.live.replica.state import Replica
from gatehouse.policy.catalog import Candidate

#: Maximum number of opened credentials in the cache of a worker.
_MAX_OPENED: Final = 5_000


class LiveSwitches:
    """Implements the engine's port `Switches`."""

    def __init__(self, replica: Replica, feed: Feed) -> None:
        self._replica = replica
        self._feed = feed

    def closed(self) -> Refusal | None:
        maintenance = self._replica.maintenance
        return None if maintenance is None else InMaintenance(maintenance)

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        stopped, providers = self._replica.switched_off, self._replica.providers_off
        # Usually both sets are empty. This check avoids hashing the id.
        if stopped and candidate.model.id in stopped:
            return True
        return bool(providers) and (tenant_id, candidate.provider.id) in providers

    def mcp_stopped(self, *ids: UUID) -> bool:
        return not self._replica.mcp_callable.issuperset(ids)

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool:
        return (tenant_id, provider_id) not in self._replica.unhealthy

    def in_touch(self) -> Awaitable[None]:
        return self._feed.before_attempt()

    def up_to_date(self) -> bool:
        return self._feed.current()


class CredentialsUnreadable(Unavailable):
    code = "provider_credentials_unreadable"
    message = "The provider's credentials cannot be opened with the current master keys. Set the credentials again."


def sealing_context(tenant_id: TenantId, provider_id: str) -> bytes:
    """Return the context of a provider's sealed credentials. It binds the credentials to their row, so that they cannot
    be moved to another row."""
    return f"provider:{tenant_id}:{provider_id}".encode()


class SealedSecrets:
    """Implements the engine's port `Secrets`: opens the credentials of providers and caches them."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        #: by row and sealed text, so that credentials opened for one row are not used for another row that has a copy
        #: of them
        self._opened: OrderedDict[tuple[TenantId, str, str], Mapping[str, str]] = OrderedDict()

    def open(self, tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        if sealed is None:
            return {}
        place = (tenant_id, key, sealed)
        opened = self._opened.get(place)
        if opened is None:
            try:
                clear = self._sealer.open(sealed, context=sealing_context(tenant_id, key))
            except CannotOpen:
                raise CredentialsUnreadable from None
            opened = self._opened[place] = msgspec.json.decode(clear, type=dict[str, str])
            if len(self._opened) > _MAX_OPENED:
                self._opened.popitem(last=False)
        return opened
