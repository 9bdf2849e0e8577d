"""Programs of the official MCP project from npm: its reference server over HTTP, and its conformance suite."""

import fcntl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest
from tests.support.ports import free_port
from tools.console import install, node_environment

_FOLDER: Final = Path(__file__).with_name("npm")
_PACKAGES: Final = _FOLDER / "node_modules" / "@modelcontextprotocol"
CONFORMANCE: Final = _PACKAGES / "conformance" / "dist" / "index.js"
_EVERYTHING: Final = _PACKAGES / "server-everything" / "dist" / "index.js"
_START_SECONDS: Final = 60


def install_packages() -> None:
    """Install the packages of the lock file, if they are not installed. Skips the test if npm fails."""
    # Parts of the suite run at the same time.
    with (_FOLDER / "package.json").open() as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        try:
            install(_FOLDER)
        except subprocess.CalledProcessError as failed:
            pytest.skip(f"npm cannot install tests/support/npm: {failed}")


@contextmanager
def everything_server() -> Iterator[str]:
    """Start the server with a tool for each feature of the protocol. Yields its URL."""
    install_packages()
    port = free_port()
    process = subprocess.Popen(
        ["node", _EVERYTHING, "streamableHttp"],
        env={**node_environment(), "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                httpx2.get(f"http://127.0.0.1:{port}/none")
                break
            except httpx2.TransportError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)
