"""The base class of gateways in the benchmark: start, stop, a target for each route of the mock, and the processes."""

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
    """The settings that every gateway receives."""

    #: the URL of the mock provider, without a path
    upstream: str
    #: folder for the files of this run; removed at the end
    work: Path
    #: folder in which other gateways are installed
    env: Path
    #: the core of the gateway and of its other processes
    core: int | str
    #: the gatehouse command; None if Gatehouse is not among the gateways
    gatehouse: Path | None = None
    #: the core of the processes with a role in `Gateway.apart`; None if all processes share the gateway's core
    beside: int | str | None = None
    #: for gateways with `over_tls`: the URL of the mock provider over TLS, and the file of its certificate
    upstream_over_tls: str = ""
    authority: Path | None = None


class Gateway:
    """A gateway under test. Subclasses define how it is started and how requests are addressed."""

    name = ""
    #: seconds within which it must answer after the start
    patience = 120.0
    #: roles that do not share the gateway's core
    apart: frozenset[str] = frozenset()
    #: whether it calls the provider over TLS
    over_tls = False

    def __init__(self, site: Site) -> None:
        self.site = site
        if site.beside is None:
            self.apart = frozenset()
        self.port = free_port()
        self.work = site.work / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / f"log-{self.port}"
        #: remarks that a reader of the figures needs
        self.remarks: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def upstream(self) -> str:
        """Return the URL of the provider, without a path."""
        return self.site.upstream_over_tls if self.over_tls else self.site.upstream

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def target(self, route: Route) -> Target:
        raise NotImplementedError

    def prepare(self) -> None:
        """Create objects over the API of the gateway. Called after the start and before the first request."""

    def start(self) -> None:
        """Start the gateway. Raises `NoAnswer` if it does not start to answer."""
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
        """Return the end of the log in one line."""
        return " / ".join(self.log.read_text(errors="replace").split("\n")[-6:]).strip(" /")[-400:]

    def processes(self) -> dict[str, list[int]]:
        """Return process ids by role. `gateway` answers requests. Other roles are measured separately."""
        return {"gateway": processes.tree(self._pid)}

    @property
    def _pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def settle(self) -> float:
        """Wait until the work that remains after requests is done. Return the monotonic time at which it was done."""
        return time.monotonic()

    def stop(self) -> None:
        if self._process is None:
            return
        others = [pid for pids in self.processes().values() for pid in pids if pid != self._process.pid]
        processes.stop([self._process.pid, *others])
        self._process.wait()
        self._process = None


def executable(folder: Path, name: str) -> str:
    """Return the path `folder/name`. Raises FileNotFoundError if it is not an executable file."""
    path = folder / name
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(path)
    return str(path)
