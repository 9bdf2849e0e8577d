"""Keywords, topics and instructions of the organization, before any DLP (reference 3, Content filter). No filter is in
a policy yet, so every call passes."""

from gatehouse.engine.exchange import Asked
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Verdict


async def check(x: Asked, ports: Ports) -> Verdict:
    return ALLOW
