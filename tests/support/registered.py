"""An outpost as a process, with the files from the portal's answer to its registration."""

from typing import Any
from uuid import UUID

from tests.support.leaks import LEAK_DETECTOR
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.server import GatehouseServer


class RegisteredOutpost(OutpostServer):
    """An outpost process for which only the portal sends trust to the platform."""

    def __init__(self, server: GatehouseServer, registration: dict[str, Any], **environment: str) -> None:
        self.registration = registration
        super().__init__(Trust(server), **environment)
        self.id = UUID(registration["outpost"]["id"])

    def enrol(self, *, days: float = 0, tell: bool = False) -> str:
        """Write the certificates of `registration`, like an operator after a renewal."""
        for path, content in (
            (self.key, self.registration["client_key"]),
            (self.certificate, self.registration["client_cert"]),
        ):
            LEAK_DETECTOR.add_secret(self.registration["client_key"], "an outpost's key")
            new = path.with_suffix(".new")
            new.write_text(content)
            new.replace(path)
        return str(self.registration["outpost"]["cert_serial"])
