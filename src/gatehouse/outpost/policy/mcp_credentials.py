"""Looks up the credentials of MCP servers in the environment, then in the bundle, where they are sealed to this
outpost's key (docs/mcp.md, "At an outpost").

`MCP_SERVER_<NAME>_HEADER` is the header of the server with that name, such as `Authorization: Bearer s3cr3t`, and
`MCP_SERVER_<NAME>_CLIENT_SECRET` is the secret of the OAuth client there. In the name, an underscore replaces each
hyphen. The name of a server has no underscore, so that a variable belongs to one server only.
"""

import re
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gatehouse.engine.providers.credentials import environment_name
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost.policy.bundle import BundleStore, InForce
from gatehouse.policy.mcp import is_reserved_header

PREFIX: Final = "MCP_SERVER_"
_HEADER, _CLIENT_SECRET = "_HEADER", "_CLIENT_SECRET"
#: the variables of a credential, by the kind of its name (`policy.mcp`)
_VARIABLES: Final = {"mcp": _HEADER, "mcp-client": _CLIENT_SECRET}
_NONE: Final[Mapping[str, str]] = {}
_read_header: Final = re.compile(r"([A-Za-z0-9-]{1,64}): *([!-~](?:[ -~]{0,4094}[!-~])?)").fullmatch


class McpCredentialMissing(Unavailable):
    code = "mcp_credential_missing"

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"This outpost has no credential for the MCP server. Its operator sets {variable}, or an administrator lets"
            " the platform send credentials to outposts."
        )


class McpSecrets:
    """The credentials of MCP servers. Raises `BadSettings` if a variable is not valid."""

    def __init__(self, bundles: BundleStore, environment: Mapping[str, str]) -> None:
        self._bundles = bundles
        self._environment: dict[str, Mapping[str, str]] = {}
        for name, value in environment.items():
            if name.startswith(PREFIX) and name.endswith(_HEADER):
                if (header := _read_header(value)) is None:
                    raise BadSettings(f"{name}: must be a header, such as `Authorization: Bearer s3cr3t`")
                if is_reserved_header(header[1]):
                    raise BadSettings(f"{name}: the gateway sets the header `{header[1]}` itself")
                self._environment[name] = {header[1]: header[2]}
            elif name.startswith(PREFIX) and name.endswith(_CLIENT_SECRET) and value:
                self._environment[name] = {"client_secret": value}
        self._in_force: InForce | None = None
        #: the part of a server's name in variables, by the server's id
        self._names: dict[UUID, str] = {}

    def open(self, key: str, sealed: str | None) -> Mapping[str, str]:
        """Returns the credential with this name. `sealed` is its fingerprint, or None if the server has no such
        credential at the platform. Raises `McpCredentialMissing`."""
        in_force = self._bundles.in_force
        if in_force is not self._in_force:
            self._in_force = in_force
            servers = () if in_force is None else in_force.bundle.mcp_servers
            self._names = {server.id: environment_name(server.name) for server in servers}
        kind, _, server_id = key.partition(":")
        name = self._names.get(UUID(server_id))
        variable = f"{PREFIX}{name}{_VARIABLES[kind]}" if name is not None and kind in _VARIABLES else ""
        if (own := self._environment.get(variable)) is not None:
            return own
        if sealed is None:
            return _NONE
        if in_force is not None and (sent := in_force.credentials.of(key)) is not None:
            return sent
        if kind not in _VARIABLES:
            # The operator of the outpost sets the variables of a command in the file of commands.
            return _NONE
        raise McpCredentialMissing(variable)
