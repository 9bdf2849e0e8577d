"""How a host starts the owner of the stdio servers (`engine.mcp.stdio.owner`)."""

import os
from pathlib import Path
from typing import Final

#: the module of the owner's process
OWNER: Final = "gatehouse.engine.mcp.stdio"
_VARIABLES: Final = (
    "MCP_STDIO_COMMANDS", "LOG_LEVEL",
    "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED", "TMPDIR", "TZ",
)  # fmt: skip


def owner_environment(home: Path) -> dict[str, str]:
    """Return the environment of the owner. `home` is the folder of its socket and of the servers' folders. The servers
    have the same user and can read this environment, so it contains no secret."""
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**variables, "GATEHOUSE_HOME": str(home.absolute())}
