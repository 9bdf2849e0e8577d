"""Compares the processor time of a request on an outpost and on its platform, and measures the memory of an idle
outpost.

    .venv/bin/python -m bench.outpost_cost [--seconds 5] [--rounds 5]

Outpost and platform take turns in answering the same requests from the sandbox provider, with the same policy (the
built-in patterns) and 16 connections of wrk. For the platform, only the gateway worker is measured, not the keeper and
PostgreSQL. For the outpost, there are two figures: the thread of the event loop, which answers, and the complete
process, which also uploads the records. The CPU time is measured by the kernel for each thread. The exit status is 1 if
a goal is not reached.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from tests.support.outpost_server import OutpostServer, Trust, chat_body
from tests.support.server import GatehouseServer

#: maximum CPU time of the outpost, as a factor of the platform's worker; maximum memory in MiB
GOAL, MEMORY_GOAL = 1.10, 150.0
TEXT = "Please summarise what we agreed on about the delivery in March, in three sentences. " * 5
CONNECTIONS = 16

_SCRIPT = """
wrk.method = "POST"
wrk.body = [==[{body}]==]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
"""


def on_cpu(pid: int, *, main: bool = False) -> float:
    """Return the CPU seconds of all threads of a process, or only of its main thread."""
    threads = [Path(f"/proc/{pid}/task/{pid}")] if main else list(Path(f"/proc/{pid}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def memory(process: psutil.Process) -> float:
    """Return the memory of a process and its children in MiB. Shared pages count once."""
    return sum(item.memory_full_info().pss for item in [process, *process.children(recursive=True)]) / 1024**2


def load(url: str, script: Path, seconds: int) -> tuple[int, int]:
    """Run the load. Return the number of answers, and the number of answers with another status than 2xx."""
    command = ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", str(seconds), "-s", str(script)]
    output = subprocess.run([*command, f"{url}/v1/chat/completions"], capture_output=True, text=True, check=True).stdout
    match, bad = re.search(r"(\d+) requests in", output), re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    assert match is not None, output
    return int(match[1]), int(bad[1]) if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with GatehouseServer() as server, OutpostServer(Trust(server)) as outpost, tempfile.TemporaryDirectory() as folder:
        assert outpost.process is not None
        pid, worker = outpost.process.pid, server.workers[0].pid
        time.sleep(3)
        idle = memory(psutil.Process(pid))
        script = Path(folder) / "chat.lua"
        script.write_text(_SCRIPT.format(body=json.dumps(chat_body(TEXT)), key=server.key))
        columns: dict[str, list[float]] = {"platform": [], "loop": [], "process": []}
        for _ in range(arguments.rounds):
            began = on_cpu(worker)
            count, bad = load(server.url, script, arguments.seconds)
            assert bad == 0
            columns["platform"].append((on_cpu(worker) - began) / count * 1e6)
            began, before = on_cpu(pid), on_cpu(pid, main=True)
            count, bad = load(outpost.url, script, arguments.seconds)
            assert bad == 0
            columns["loop"].append((on_cpu(pid, main=True) - before) / count * 1e6)
            columns["process"].append((on_cpu(pid) - began) / count * 1e6)
        loaded = memory(psutil.Process(pid))
    cost = {name: statistics.median(result) for name, result in columns.items()}
    ratio = cost["loop"] / cost["platform"]
    for name, result in columns.items():
        rounds = " ".join(f"{item:.0f}" for item in result)
        print(f"{name:10} {cost[name]:6.0f} us of CPU per request (rounds: {rounds})")
    process_ratio = cost["process"] / cost["platform"]
    print(f"an outpost's cost is {ratio:.2f} of the platform's (goal {GOAL}); {process_ratio:.2f} with the upload")
    print(f"memory: {idle:.0f} MiB idle (goal {MEMORY_GOAL:.0f}), {loaded:.0f} MiB after the load")
    return int(ratio > GOAL or idle > MEMORY_GOAL)


if __name__ == "__main__":
    sys.exit(main())
