"""The whole suite in parts, several at once, for `make test`: tests with servers of their own wait, the others compute.

Exit status 0 where all parts pass. What failed is shown last, and named at the very end.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

#: More cost each other a sixth of their time (six instead of five, on two cores); fewer leave the cores idle while
#: servers start.
PARALLEL_PARTS: Final = 4

#: Start servers, most of them with several processes, and wait for them.
SERVERS: Final = ("tests/cli", "tests/platform/keeper", "tests/platform/live", "tests/platform/operations")
#: Start and stop whole platforms, one after the other.
STARTS: Final = ("tests/platform/installation", "tests/platform/worker", "tests/platform/test_worker.py")
#: Minutes in one test.
MADE_UP: Final = "tests/contract/test_schemathesis.py"
#: Folders of the parts below; whatever is in none of them is with the others.
_NAMED: Final = ("outpost", "contract", "detection", "engine", "journeys", "platform", "cli", "portal")
_OWN: Final = (*SERVERS, *STARTS, "tests/platform/access", "tests/platform/console")
#: Each part's paths, the longest first: what comes last ends the suite.
PARTS: Final[dict[str, Sequence[str]]] = {
    "platform": ("tests/platform", *(f"--ignore={path}" for path in _OWN)),
    "others": ("tests", *(f"--ignore=tests/{part}" for part in _NAMED)),
    "outpost": ("tests/outpost",),
    "journeys": ("tests/journeys",),
    "engine": ("tests/engine",),
    "access": ("tests/platform/access",),
    "made up": (MADE_UP,),
    "starts": STARTS,
    "servers": SERVERS,
    "contract": ("tests/contract", f"--ignore={MADE_UP}"),
    "console": ("tests/platform/console",),
    "portal": ("tests/portal",),
    "detection": ("tests/detection",),
}


_running: Final[list[subprocess.Popen[bytes]]] = []


class Ended(NamedTuple):
    """How a part ended: pytest's exit status and output."""

    part: str
    status: int
    output: str
    seconds: float
    #: of the part and all processes that it has waited for
    cpu_seconds: float

    @property
    def failures(self) -> list[str]:
        """The failed tests, as pytest names them in its summary."""
        return [f"  {line}" for line in self.output.splitlines() if line.startswith(("FAILED ", "ERROR "))]


def ran(part: str, paths: Sequence[str]) -> Ended:
    began = time.monotonic()
    # Into a file: a pipe is at its end only when everybody is who was started meanwhile.
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-m", "pytest", "--durations=10", "-rsfE", *paths]
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _running.append(running)
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        result = output.read().decode(errors="replace")
    seconds = time.monotonic() - began
    ended = Ended(part, running.returncode, result, seconds, usage.ru_utime + usage.ru_stime)
    # The outputs come at the end; what has failed shows at once.
    summary = f"{part}: {ended.seconds:.0f} s, CPU {ended.cpu_seconds:.0f} s, exit status {ended.status}"
    sys.stderr.write("\n".join([summary, *ended.failures]) + "\n")
    return ended


def stop(*_: object) -> NoReturn:
    """Ends what runs as Ctrl-C does, so that it takes down the servers that it started."""
    for item in _running:
        item.send_signal(signal.SIGINT)
    sys.exit(128 + signal.SIGTERM)


def main() -> int:
    # From the folder of the project: the parts that are named are in it.
    os.chdir(Path(__file__).parent.parent)
    # Compiled once: hundreds of processes start, and each would compile the whole package for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGTERM, stop)
    began = time.monotonic()
    pool = ThreadPoolExecutor(PARALLEL_PARTS)
    try:
        parts = [pool.submit(ran, *part) for part in PARTS.items()]
        ended = [part.result() for part in parts]
    finally:
        # Whoever interrupts this does not wait for what has not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    lines = []
    for outcome in sorted(ended, key=lambda item: item.status != 0):
        lines += [f"\n===== {outcome.part}: {outcome.seconds:.0f} s, exit status {outcome.status}", outcome.output]
    lines.append(f"===== the suite: {time.monotonic() - began:.0f} s")
    skipped = [line for part in ended for line in part.output.splitlines() if line.startswith("SKIPPED ")]
    if skipped:
        lines += ["not run here:", *(f"  {line}" for line in sorted(set(skipped)))]
    for outcome in ended:
        if outcome.status:
            lines.append(f"failed: {outcome.part}")
            lines += outcome.failures
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(outcome.status for outcome in ended))


if __name__ == "__main__":
    sys.exit(main())
