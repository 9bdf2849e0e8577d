"""What the bench needs: tools of the machine, named when they are missing, and the peers, which it installs."""

import shutil
import subprocess
import sys
from pathlib import Path

LITELLM = "litellm[proxy]==1.106.2"
PORTKEY = "@portkey-ai/gateway@1.15.2"

#: command -> where Debian keeps it
EVERYWHERE = {"cc": "gcc", "wrk": "wrk", "taskset": "util-linux"}
BY_GATEWAY = {"nginx": {"nginx": "nginx"}, "portkey": {"node": "nodejs", "npm": "npm"}}


def find_gatehouse(named: Path | None = None) -> Path | None:
    """The gatehouse command: the one named, the one beside the running Python, the one in PATH."""
    beside = Path(sys.executable).parent / "gatehouse"
    in_path = shutil.which("gatehouse")
    choices = [named] if named else [beside, *([Path(in_path)] if in_path else [])]
    return next((choice.absolute() for choice in choices if choice.exists()), None)


def missing(gateways: list[str], gatehouse: Path | None) -> list[str]:
    """A line for each tool that is not there and how to get it."""
    wanted = dict(EVERYWHERE)
    for name in gateways:
        wanted.update(BY_GATEWAY.get(name, {}))
    lines = [f"{tool}: apt-get install {package}" for tool, package in wanted.items() if not shutil.which(tool)]
    if "gatehouse" in gateways and gatehouse is None:
        lines.append("gatehouse: run `make setup`, then this with .venv/bin/python; or --gatehouse COMMAND")
    return lines


def peers(gateways: list[str], env: Path, log: Path) -> None:
    """Installs what is not installed under `env`. Raises `CalledProcessError`; the log holds the reason."""
    env.mkdir(parents=True, exist_ok=True)
    steps: list[list[str]] = []
    if "litellm" in gateways and not (env / "litellm" / "bin" / "litellm").exists():
        python = env / "litellm" / "bin" / "python"
        steps.append([sys.executable, "-m", "venv", str(env / "litellm")])
        steps.append([str(python), "-m", "pip", "install", "--quiet", LITELLM])
    if "portkey" in gateways and not (env / "portkey" / "node_modules" / "@portkey-ai").exists():
        (env / "portkey").mkdir(exist_ok=True)
        steps.append(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(env / "portkey"), PORTKEY])
    with log.open("ab") as out:
        for step in steps:
            print(f"installing: {' '.join(step)}", file=sys.stderr)
            subprocess.run(step, check=True, stdout=out, stderr=out)
