"""Data-loss prevention on what goes out (reference 3, DLP rule). No rule is in a policy yet, so every call passes."""

from gatehouse.engine.exchange import Asked
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Verdict


async def inspect(x: Asked, ports: Ports) -> Verdict:
    return ALLOW
