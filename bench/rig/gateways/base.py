"""What the bench asks of a gateway: start, a target for each of the mock's routes, its processes, stop."""

import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from rig import load, processes
from rig.load import Route, Target
from rig.ports import free_port


@dataclass(frozen=True)
class Site:
    """What every gateway is given."""

    #: the mock provider, without a path
    upstream: str
    #: where this run keeps files; removed when it is over
    work: Path
    #: peers are installed here
    env: Path
    #: the core of the gateway and of everything that belongs to it
    core: int | str
    #: the gatehouse command, None when it is not among the gateways
    gatehouse: Path | None = None
    #: the core of what does not share the gateway's (`Gateway.apart`); without one everything does
    beside: int | str | None = None


class Gateway:
    """One gateway under test. Subclasses say how it is started and how a request is addressed."""

    name = ""
    #: seconds until it must answer
    patience = 120.0
    #: roles that do not share the gateway's core
    apart: frozenset[str] = frozenset()

    def __init__(self, site: Site) -> None:
        self.site = site
        if site.beside is None:
            self.apart = frozenset()
        self.port = free_port()
        self.work = site.work / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / f"log-{self.port}"
        #: what a reader of the figures must know
        self.remarks: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def target(self, route: Route) -> Target:
        raise NotImplementedError

    def prepare(self) -> None:
        """After the start, before the first request: whatever must be created over the gateway's own API."""

    def start(self) -> None:
        """Raises `NoAnswer` when the gateway does not come up."""
        self._process = processes.spawn(self.command(), core=self.site.core, log=self.log, env=self.environment())
        if not processes.wait_until(self._listens, seconds=self.patience, every=0.25) or not self.alive():
            raise load.NoAnswer(f"does not start: {self.last_words()}")
        self.prepare()
        last: list[load.NoAnswer] = []

        def answers() -> bool:
            try:
                load.probe(self.target(Route.IMMEDIATE), stream=False)
            except load.NoAnswer as error:
                last[:] = [error]
                return False
            return True

        if not processes.wait_until(answers, seconds=30, every=0.5):
            raise last[0]
        for role in self.apart:
            processes.pin(self.processes()[role], self.site.beside)

    def _listens(self) -> bool:
        if not self.alive():
            return True
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def last_words(self) -> str:
        """The end of the log, on one line."""
        return " / ".join(self.log.read_text(errors="replace").split("\n")[-6:]).strip(" /")[-400:]

    def processes(self) -> dict[str, list[int]]:
        """Process ids by role. `gateway` answers requests; other roles are measured apart from it."""
        return {"gateway": processes.tree(self._pid)}

    @property
    def _pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def settle(self) -> float:
        """Waits until work that requests left behind is done; returns when it was, by the monotonic clock."""
        return time.monotonic()

    def stop(self) -> None:
        if self._process is None:
            return
        others = [pid for pids in self.processes().values() for pid in pids if pid != self._process.pid]
        processes.stop([self._process.pid, *others])
        self._process.wait()
        self._process = None


def executable(folder: Path, name: str) -> str:
    """`folder/name`; raises FileNotFoundError when it is not there to be run."""
    path = folder / name
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(path)
    return str(path)
