"""Installs the newest version of a client in a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.coding_agents.clients import Client
from tools.coding_agents.pages import packages
from tools.console import node, node_environment, npm

_BIN: Final = Path(sys.executable).parent


def install(client: Client, folder: Path) -> dict[str, str]:
    """Install the packages that the client's page names. Return the environment variables for its programs. Raises
    `CalledProcessError`."""
    folder.mkdir()
    installer, names = packages(client.name)
    environment = node_environment()
    if installer is None:
        return environment
    if installer == "npm":
        npm("install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), *names, folder=folder)
        for script in client.setup_scripts:
            node(folder / "node_modules" / client.package / script, folder=folder)
        programs = folder / "node_modules" / ".bin"
    else:
        subprocess.run([_BIN / "uv", "venv", "--quiet", "--python", sys.executable, folder], check=True)
        programs = folder / "bin"
        subprocess.run([_BIN / "uv", "pip", "install", "--quiet", "--python", programs / "python", *names], check=True)
    return {**environment, "PATH": f"{programs}{os.pathsep}{environment['PATH']}"}


def version(client: Client, folder: Path) -> str:
    """Return the installed version of a client."""
    installer, _ = packages(client.name)
    if installer is None:
        output = subprocess.run([client.package, "--version"], check=True, capture_output=True, text=True).stdout
        return output.split()[1]
    if installer == "npm":
        return str(json.loads((folder / "node_modules" / client.package / "package.json").read_text())["version"])
    code = f"import importlib.metadata as m; print(m.version({client.package!r}))"
    return subprocess.run(
        [folder / "bin" / "python", "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()
