"""Checks the tools that the benchmarks need on the machine, and installs the other gateways and tools."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

LITELLM = "litellm[proxy]==1.106.2"
PORTKEY = "@portkey-ai/gateway@1.15.2"
TENSORZERO = "tensorzero==2026.6.0"
PY_SPY = "py-spy==0.4.3"
MATPLOTLIB = "matplotlib==3.11.2"
ATHERIS = "atheris==3.0.0"

#: maps a command to its Debian package
EVERYWHERE = {"cc": "gcc", "wrk": "wrk", "taskset": "util-linux"}
_TLS = {"nginx": "nginx", "openssl": "openssl"}
BY_GATEWAY = {
    "nginx": {"nginx": "nginx"},
    "nginx_tls": _TLS,
    "gatehouse_tls": _TLS,
    "portkey": {"node": "nodejs", "npm": "npm"},
}


def use_project_python() -> None:
    """Continue in the Python of the project if the running Python has no PostgreSQL driver."""
    project = ROOT / ".venv" / "bin" / "python"
    if find_spec("psycopg") is None and project.exists() and sys.prefix != str(project.parent.parent):
        os.execv(project, [str(project), *sys.argv])


def find_gatehouse(named: Path | None = None) -> Path | None:
    """Return the path of the gatehouse command: `named` if it is set, or the command in the folder of the running
    Python, or the command in PATH."""
    beside = Path(sys.executable).parent / "gatehouse"
    in_path = shutil.which("gatehouse")
    choices = [named] if named else [beside, *([Path(in_path)] if in_path else [])]
    return next((choice.absolute() for choice in choices if choice.exists()), None)


def missing(gateways: list[str], gatehouse: Path | None) -> list[str]:
    """Return a line for each missing tool that says how to install it."""
    expected = dict(EVERYWHERE)
    for name in gateways:
        expected.update(BY_GATEWAY.get(name, {}))
    lines = [f"{tool}: apt-get install {package}" for tool, package in expected.items() if not shutil.which(tool)]
    ours = {"gatehouse", "inspecting", "one_core", "libraries", "gatehouse_tls"} & set(gateways)
    if ours and gatehouse is None:
        lines.append("gatehouse: run `make setup`, or name the command with --gatehouse")
    if ours and find_spec("psycopg") is None:
        lines.append("psycopg: run this with the Python into which Gatehouse is installed")
    return lines


def peers(gateways: list[str], env: Path, log: Path) -> None:
    """Install the missing gateways into `env`. Raises `CalledProcessError`; the log contains the reason."""
    env.mkdir(parents=True, exist_ok=True)
    if "litellm" in gateways:
        _python_program("litellm", LITELLM, env, log)
    if "tensorzero" in gateways and not list((env / "tensorzero").glob("lib/python*/site-packages/tensorzero")):
        environment(env / "tensorzero", [TENSORZERO], log)
    if "portkey" in gateways and not (env / "portkey" / "node_modules" / "@portkey-ai").exists():
        (env / "portkey").mkdir(exist_ok=True)
        _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(env / "portkey"), PORTKEY], log)


def py_spy(env: Path, log: Path) -> Path:
    """Return the path of py-spy, a sampling profiler. Install it into `env` if it is missing. Raises
    `CalledProcessError`."""
    return _python_program("py-spy", PY_SPY, env, log)


def matplotlib(env: Path, log: Path) -> Path:
    """Return a Python with matplotlib. Install it into `env` if it is missing. Raises `CalledProcessError`."""
    python = env / "plots" / "bin" / "python"
    if not (env / "plots" / "bin" / "fonttools").exists():
        environment(env / "plots", [MATPLOTLIB], log)
    return python


def nginx() -> str:
    """Return the version that nginx prints."""
    program = shutil.which("nginx")
    if program is None:
        return "nginx: not there"
    output = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
    return output.partition(": ")[2].strip()


def atheris(env: Path, log: Path) -> Path:
    """Return a folder from which the fuzzer can be imported in the Python of the project. Install it into `env` if it
    is missing. Raises `CalledProcessError`."""
    folder = env / "atheris"
    if not (folder / "atheris").exists():
        env.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        _run([*pip, "--only-binary", ":all:", "--target", str(folder), ATHERIS], log)
    return folder


def _python_program(name: str, package: str, env: Path, log: Path) -> Path:
    program = env / name / "bin" / name
    if not program.exists():
        environment(env / name, [package], log)
    return program


def environment(folder: Path, packages: Sequence[str], log: Path) -> None:
    """Create a Python environment with these packages. Raises `CalledProcessError`."""
    _run([sys.executable, "-m", "venv", str(folder)], log)
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], log)


def _run(command: list[str], log: Path) -> None:
    print(f"installing: {' '.join(command)}", file=sys.stderr)
    with log.open("ab") as out:
        subprocess.run(command, check=True, stdout=out, stderr=out)
