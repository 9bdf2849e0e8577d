"""An outpost as its own process, with what the portal's registration has answered in its files."""

from typing import Any
from uuid import UUID

from tests.support.leaks import WATCH
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.server import GatehouseServer


class RegisteredOutpost(OutpostServer):
    """Whom the platform believes is the portal's affair: nobody else tells it."""

    def __init__(self, server: GatehouseServer, registration: dict[str, Any], **environment: str) -> None:
        self.registration = registration
        super().__init__(Trust(server), **environment)
        self.id = UUID(registration["outpost"]["id"])

    def enrol(self, *, days: float = 0, tell: bool = False) -> str:
        """Writes what `registration` holds now, as an operator does after a renewal."""
        for path, content in (
            (self.key, self.registration["client_key"]),
            (self.certificate, self.registration["client_cert"]),
        ):
            WATCH.secret(self.registration["client_key"], "an outpost's key")
            new = path.with_suffix(".new")
            new.write_text(content)
            new.replace(path)
        return str(self.registration["outpost"]["cert_serial"])
