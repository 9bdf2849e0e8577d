"""Chooses the HTTP client for calls to providers."""

from typing import Literal, TypeAlias

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

#: values of the setting OUTBOUND
Carrier: TypeAlias = Literal["lean", "aiohttp"]


def open_outbound(
    carrier: Carrier, max_connections: int, guard: EgressGuard, *, max_per_provider: int | None = None
) -> Outbound:
    """Returns the client. `max_per_provider` limits the calls to one provider. Without it one provider may use all
    `max_connections`."""
    kind = LeanOutbound if carrier == "lean" else AiohttpOutbound
    return kind(max_connections, max_per_provider=max_per_provider, guard=guard)
