"""Starts processes on a core, measures them with /proc, and stops them with all their children."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


def spawn(
    command: list[str], *, core: int | str, log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `command` on `core`, or on several cores (`0-1`). Its children inherit the cores. Its output is written to
    `log`."""
    with log.open("ab") as out:
        return subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "NO_PROXY": "127.0.0.1,localhost", **(env or {})},
            start_new_session=True,
        )


def pin(pids: Iterable[int], core: int | str) -> None:
    """Move all threads of `pids` to `core`. Threads and processes that they start later inherit it."""
    for pid in pids:
        # It is not an error if a process has ended in the meantime.
        subprocess.run(["taskset", "-a", "-p", "-c", str(core), str(pid)], check=False, capture_output=True)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third field (`state`) on, or None if the process has ended."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def everyone() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def command_line(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def tree(*roots: int) -> list[int]:
    """Return the running processes among `roots`, and all their descendants."""
    children: dict[int, list[int]] = {}
    for pid in everyone():
        if (stat := _stat(pid)) and stat[0] != "Z":
            children.setdefault(int(stat[1]), []).append(pid)
    results = [root for root in roots if (stat := _stat(root)) and stat[0] != "Z"]
    for pid in results:
        results += [child for child in children.get(pid, ()) if child not in results]
    return results


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the user and system time of processes, including that of children that have ended."""
    return sum(sum(map(int, stat[11:15])) for pid in pids if (stat := _stat(pid))) / TICK


def memory_mib(pids: Iterable[int]) -> float:
    """Return the memory of processes as proportional set size. Memory that several processes share counts once."""
    total = 0
    for pid in pids:
        try:
            rows = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += next((int(row.split()[1]) for row in rows if row.startswith("Pss:")), 0)
    return total / 1024


@dataclass(frozen=True)
class Usage:
    """The use of a core: the elapsed seconds, and the seconds in which the core was busy."""

    at: float
    busy: float

    @classmethod
    def of(cls, core: int) -> "Usage":
        row = next(line for line in (PROC / "stat").read_text().splitlines() if line.startswith(f"cpu{core} "))
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, row.split()[1:9])
        return cls(time.monotonic(), (user + nice + system + irq + softirq + steal) / TICK)

    def foreign_share(self, before: "Usage", own: float) -> float:
        """Return the share of time, 0 to 1, in which other processes used the core."""
        return max(0.0, (self.busy - before.busy - own) / (self.at - before.at))


def stop(pids: list[int], *, grace: float = 20.0, first: int = signal.SIGTERM) -> None:
    """Send the signal `first` to the first of `pids`, wait for all processes, and kill those that still run after
    `grace` seconds."""
    if pids:
        _signal(pids[0], first)
    if not wait_until(lambda: not tree(*pids), seconds=grace):
        for pid in tree(*pids):
            _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def wait_until(true: Callable[[], object], *, seconds: float, every: float = 0.1) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True
