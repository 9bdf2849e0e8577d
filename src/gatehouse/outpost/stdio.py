"""The stdio MCP servers of an outpost (docs/mcp.md, "At an outpost"). Their owner is a child process of the outpost,
and ends with it."""

from pathlib import Path

from gatehouse.engine.mcp.stdio.authentication import KEY
from gatehouse.engine.mcp.stdio.client import open_client
from gatehouse.engine.mcp.stdio.starting import OWNER, owner_environment
from gatehouse.outpost.child_process import ChildProcess
from gatehouse.policy.bundles.contents import PolicyBundle


class LocalStdio:
    """The owner's process and its client. `client` is None if the operator permits no commands."""

    def __init__(self, folder: Path, commands_path: Path | None) -> None:
        """`folder` is the outpost's folder and not `GATEHOUSE_HOME`, where a platform may have its own owner. Raises
        `BadSettings`."""
        self.client = open_client(folder, commands_path)
        self._owner = ChildProcess(OWNER, owner_environment(folder), sent=KEY)
        self._definitions: dict[str, str | None] = {}

    def activated(self, bundle: PolicyBundle) -> None:
        """Ends the processes of servers that the bundle changes, switches off or no longer contains."""
        definitions = {
            str(server.id): None if server.id in bundle.switched_off else server.stdio.definition
            for server in bundle.mcp_servers
            if server.stdio is not None
        }
        if self.client is not None and definitions != self._definitions:
            self._definitions = definitions
            self.client.end_obsolete(definitions, is_complete=True)

    def start(self) -> None:
        if self.client is not None:
            self._owner.start()

    async def stop(self) -> None:
        if self.client is not None:
            await self.client.stop()
        await self._owner.stop()
