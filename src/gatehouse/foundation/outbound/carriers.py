"""Who carries calls to providers."""

from typing import Literal, TypeAlias

from gatehouse.foundation.egress import EgressGuard
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

#: What the setting OUTBOUND may say.
Carrier: TypeAlias = Literal["lean", "aiohttp"]


def open_outbound(
    carrier: Carrier, max_connections: int, guard: EgressGuard, *, max_each: int | None = None
) -> Outbound:
    """`max_each` is one provider's share of `max_connections`; without it one may have them all."""
    kind = LeanOutbound if carrier == "lean" else AiohttpOutbound
    return kind(max_connections, max_each=max_each, guard=guard)
