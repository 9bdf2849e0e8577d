"""Samples the resources of the processes of the soak. The tasks of the event loops are read from `/metrics`."""

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
    """One sample of a process. `age` is the age of the process in seconds. `descriptors` and `tasks` do not include one
    of each for every connection of a client, because clients move to another worker when a worker is killed. For
    PostgreSQL, `tasks` is the number of its processes, and `descriptors` does not include data files. Redis has no
    tasks."""

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
        #: the samples by role, in order of time, of all processes with this role
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
        """Return the number of connections to a worker, without its listening socket."""
        port = int(self._server.url.rpartition(":")[2])
        return sum(
            bool(connection.raddr) and connection.laddr.port == port for connection in worker.net_connections("tcp")
        )

    def _hold(
        self, role: str, processes: list[psutil.Process], tasks: int | None, *, clients: int = 0, files: int = 0
    ) -> None:
        """Take a sample of a process, or of a process and its descendants. No sample is taken if one of them ends
        meanwhile."""
        with contextlib.suppress(psutil.Error, OSError):
            memory_mib = sum(own_mib(process.pid) for process in processes)
            descriptors = sum(process.num_fds() for process in processes) - clients - files
            beside = None if tasks is None else tasks - clients
            age = time.time() - processes[0].create_time()
            self.seen[role].append(Look(time.monotonic(), age, memory_mib, descriptors, beside))

    def _tasks(self) -> dict[int, int]:
        """Return the number of tasks by process. Return an empty map while the worker that is called is being
        killed."""
        text = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            text = urllib.request.urlopen(f"{self._server.url}/metrics", timeout=5).read().decode()
        return {int(pid): int(float(count)) for pid, count in _TASKS.findall(text)}


def data_files(pid: int) -> int:
    """Return the number of data files that a process of PostgreSQL has open. A process keeps opened files open, up to
    `max_files_per_process`, so this number depends only on the tables and indexes that it has used."""
    memory_mib = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        # The descriptor that was used to list the others no longer exists.
        with contextlib.suppress(OSError):
            memory_mib += any(part in str(path.readlink()) for part in ("/base/", "/global/"))
    return memory_mib


def own_mib(pid: int) -> float:
    """Return the memory of a process in MiB. Pages that several processes share count once. Shared memory is not
    counted: it is the buffers of PostgreSQL, which have a configured size and fill up when tables are read."""
    rows = (row.split() for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kib = {row[0]: int(row[1]) for row in rows}
    return (kib["Pss:"] - kib.get("Pss_Shmem:", 0)) / 1024
