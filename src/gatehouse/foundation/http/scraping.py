"""Serves metrics to the addresses in `METRICS_ALLOWED_CIDRS`."""

import asyncio
from functools import lru_cache
from ipaddress import ip_address

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import Scope

from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.metrics import Metrics
from gatehouse.foundation.settings import CommonSettings


async def metrics_response(
    scope: Scope, settings: CommonSettings, addresses: ClientAddresses, metrics: Metrics
) -> Response | None:
    """Returns the metrics in Prometheus' text format, or None if the client may not read them. A client whose address
    an untrusted proxy hides may not."""
    if addresses.unknown_origin(scope) or not _allowed(settings.metrics_allowed_cidrs, addresses.of_scope(scope)):
        return None
    metrics.write()
    return Response(await asyncio.to_thread(metrics.rendered), media_type=CONTENT_TYPE_LATEST)


@lru_cache(maxsize=1024)
def _allowed(cidrs: tuple[str, ...], address: str) -> bool:
    client = ip_address(address)
    return any(client in network(cidr) for cidr in cidrs)
