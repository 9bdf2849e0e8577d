"""Refuses new requests while an operator keeps the platform closed (reference 3, Maintenance mode)."""

import msgspec

from gatehouse.engine.exchange import Received
from gatehouse.engine.ports import Maintenance, Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unavailable


class InMaintenance(Unavailable):
    code = "maintenance_mode"

    def __init__(self, maintenance: Maintenance) -> None:
        super().__init__(
            maintenance.message or "The platform is in maintenance.",
            headers={"Retry-After": str(maintenance.retry_after)},
        )

    def body(self) -> bytes:
        """The same on every path (reference 3, Health and system)."""
        return msgspec.json.encode({"error": self.code, "message": self.text})


async def check(x: Received, ports: Ports) -> Verdict:
    maintenance = ports.switches.maintenance()
    return ALLOW if maintenance is None else Refuse(InMaintenance(maintenance))
