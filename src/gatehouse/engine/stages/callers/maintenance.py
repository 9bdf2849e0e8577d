"""Refuses new requests while the host is in maintenance, or while the whole host is switched off
(docs/operations.md)."""

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
        """Return the body, which has the same form on every path."""
        return msgspec.json.encode({"error": self.code, "message": self.text})


def check(x: Received, ports: Ports) -> Verdict:
    refused = ports.switches.closed()
    return ALLOW if refused is None else Refuse(refused)
