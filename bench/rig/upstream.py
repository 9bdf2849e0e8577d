"""Compiles the mock provider from `upstream/mock.c`, and runs it as one process on the core of the load."""

import json
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from rig import processes
from rig.ports import free_port

SOURCE = Path(__file__).parent.parent / "upstream" / "mock.c"


@dataclass(frozen=True)
class Stats:
    served: int
    open: int
    streams: int
    streams_peak: int


class Mock:
    def __init__(self, out: Path, *, core: int) -> None:
        binary = out / "mock"
        if not binary.exists() or binary.stat().st_mtime < SOURCE.stat().st_mtime:
            subprocess.run(["cc", "-O2", "-o", str(binary), str(SOURCE)], check=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = processes.spawn([str(binary), str(self.port)], core=core, log=out / "mock.log")
        if not processes.wait_until(self._answers, seconds=5):
            raise RuntimeError(f"the mock provider does not start; see {out / 'mock.log'}")

    def _answers(self) -> bool:
        try:
            return self.stats().open > 0
        except OSError:
            return False

    def stats(self, *, reset_peak: bool = False) -> Stats:
        path = "/stats/reset" if reset_peak else "/stats"
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return Stats(**json.load(answer))

    def stop(self) -> None:
        processes.stop([self._process.pid])
        self._process.wait()
