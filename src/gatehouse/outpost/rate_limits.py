"""The outpost's rate limits. They apply to each caller, or to each address if there is no authenticated caller
(docs/outposts.md, "Settings")."""

from typing import Final

from gatehouse.engine.rate_limits.selection import LimitRule, address_key
from gatehouse.foundation.identity import Caller
from gatehouse.ingress.gateway import SCAN
from gatehouse.outpost.settings import OutpostSettings

PROXY: Final = "proxy"


class LocalLimits:
    """Implements the engine's `RateLimits`. The organization's limits apply only at the platform."""

    def __init__(self, settings: OutpostSettings) -> None:
        self._proxy = settings.rate_limit_proxy_per_minute
        self._scan = settings.rate_limit_scan_per_minute

    def resolve(self, method: str, path: str, caller: Caller | None, client_address: str) -> LimitRule | None:
        key = caller.rate_key if caller is not None and caller.rate_key else address_key(client_address)
        if path.rstrip("/") == SCAN:
            return LimitRule(f"{key}|scan", self._scan, "scan")
        return LimitRule(key, self._proxy, PROXY)
