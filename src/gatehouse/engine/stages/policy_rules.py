"""The organization's own rules (decisions 6, Policy engine). None is in a policy yet, so every call passes."""

from gatehouse.engine.exchange import Asked
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Verdict


async def judge(x: Asked, ports: Ports) -> Verdict:
    return ALLOW
