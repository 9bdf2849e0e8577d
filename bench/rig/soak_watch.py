"""What the processes of the soak hold, from outside, and their event loops' tasks, as `/metrics` tells them."""

import contextlib
import http.client
import re
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.support.redis import RedisServer
from tests.support.server import GatehouseServer

_TASKS = re.compile(r'^service_event_loop_tasks\{pid="(\d+)"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Look:
    """`age`: seconds that the process lives. `descriptors` and `tasks` are those beside one of each for a client's
    connection: callers move from worker to worker as one is killed. `tasks` of PostgreSQL are its processes, and its
    descriptors those beside data files; Redis has no tasks."""

    at: float
    age: float
    mib: float
    descriptors: int
    tasks: int | None


class Watch:
    def __init__(self, server: GatehouseServer, redis: RedisServer, spared: int) -> None:
        self._server = server
        self._redis = redis
        self._spared = spared
        #: by role, in the order of time, over all processes that had it
        self.seen: dict[str, list[Look]] = defaultdict(list)

    def look(self) -> None:
        tasks = self._tasks()
        for worker in self._server.workers:
            role = "spared worker" if worker.pid == self._spared else "other worker"
            with contextlib.suppress(psutil.Error):
                self._hold(role, [worker], tasks.get(worker.pid), clients=self.clients(worker))
        for keeper in self._server.keepers:
            self._hold("keeper", [keeper], tasks.get(keeper.pid))
        with contextlib.suppress(psutil.NoSuchProcess):
            self._hold("Redis", [psutil.Process(self._redis._process.pid)], None)
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            first = (self._server.home / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0]
            database = psutil.Process(int(first))
            processes = [database, *database.children(recursive=True)]
            files = sum(data_files(process.pid) for process in processes)
            self._hold("PostgreSQL", processes, len(processes), files=files)

    def clients(self, worker: psutil.Process) -> int:
        """Connections to it, without the socket that it listens on."""
        port = int(self._server.url.rpartition(":")[2])
        return sum(
            bool(connection.raddr) and connection.laddr.port == port for connection in worker.net_connections("tcp")
        )

    def _hold(
        self, role: str, processes: list[psutil.Process], tasks: int | None, *, clients: int = 0, files: int = 0
    ) -> None:
        """One look at a process, or at one and all that it has started. Not where one of them ends meanwhile."""
        with contextlib.suppress(psutil.Error, OSError):
            memory_mib = sum(own_mib(process.pid) for process in processes)
            descriptors = sum(process.num_fds() for process in processes) - clients - files
            beside = None if tasks is None else tasks - clients
            age = time.time() - processes[0].create_time()
            self.seen[role].append(Look(time.monotonic(), age, memory_mib, descriptors, beside))

    def _tasks(self) -> dict[int, int]:
        """By process. None while the worker that is asked is being killed."""
        text = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            text = urllib.request.urlopen(f"{self._server.url}/metrics", timeout=5).read().decode()
        return {int(pid): int(float(count)) for pid, count in _TASKS.findall(text)}


def data_files(pid: int) -> int:
    """How many of PostgreSQL's tables and indexes a process holds open. It keeps what it has opened, up to
    `max_files_per_process`, so this tells what it was asked for since it began, and nothing else."""
    memory_mib = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        # One that was opened to look at the others is gone.
        with contextlib.suppress(OSError):
            memory_mib += any(part in str(path.readlink()) for part in ("/base/", "/global/"))
    return memory_mib


def own_mib(pid: int) -> float:
    """Pages that several processes have count once. Shared memory does not: that is PostgreSQL's buffers, which are as
    large as they are configured and fill up as tables are read."""
    rows = (row.split() for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kib = {row[0]: int(row[1]) for row in rows}
    return (kib["Pss:"] - kib.get("Pss_Shmem:", 0)) / 1024
