"""Who carries calls to providers."""

from typing import Literal, TypeAlias

from gatehouse.foundation.egress import EgressGuard
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

#: What the setting OUTBOUND may say.
Carrier: TypeAlias = Literal["lean", "aiohttp"]


def open_outbound(carrier: Carrier, max_connections: int, guard: EgressGuard) -> Outbound:
    if carrier == "lean":
        return LeanOutbound(max_connections, guard=guard)
    return AiohttpOutbound(max_connections, guard=guard)
