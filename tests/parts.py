"""The whole suite in parts, several at once, for `make test`: tests with servers of their own wait, the others compute.

Exit status 0 where all parts pass. A test that fails beside the others runs once more when the machine is free: two
cores that start fifty servers at once keep nobody's times. What fails alone too is a failure, and so are more than a
few, and whatever is not a test's own: a fixture's, a part's. The end of the output names them all.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.failures_plugin import VARIABLE

#: More cost each other a sixth of their time (six instead of five, on two cores); fewer leave the cores idle while
#: servers start.
AT_ONCE: Final = 4
#: So many failures may be the machine's; more are the code's.
RUN_AGAIN: Final = 6

#: Start servers, most of them with several processes, and wait for them.
SERVERS: Final = (
    "tests/cli", "tests/platform/keeper", "tests/platform/live", "tests/platform/operations",
    "tests/platform/upkeep", "tests/platform/test_jobs.py", "tests/platform/test_worker.py",
)  # fmt: skip
#: Folders of the parts below; whatever is in none of them is with the others.
_NAMED: Final = ("outpost", "contract", "journeys", "platform", "cli", "portal")
_OWN: Final = (*SERVERS, "tests/platform/access")
#: Each part's paths, the longest first: what comes last ends the suite.
PARTS: Final[dict[str, Sequence[str]]] = {
    "journeys": ("tests/journeys",),
    "outpost": ("tests/outpost",),
    "contract": ("tests/contract",),
    "access": ("tests/platform/access",),
    "others": ("tests", *(f"--ignore=tests/{part}" for part in _NAMED)),
    "servers": SERVERS,
    "platform": ("tests/platform", *(f"--ignore={path}" for path in _OWN)),
    "portal": ("tests/portal",),
}


class Ended(NamedTuple):
    """How a part ended: pytest's exit status and output, the tests that failed, and those whose fixtures did."""

    part: str
    status: int
    output: bytes
    failed: Sequence[str]
    fixtures: Sequence[str]
    seconds: float


def ran(part: str, paths: Sequence[str]) -> Ended:
    began = time.monotonic()
    with tempfile.NamedTemporaryFile("r") as told, tempfile.TemporaryFile() as output:
        # Into a file: a pipe is at its end only when everybody is who was started meanwhile.
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--durations=10", "-p", "tests.support.failures_plugin", *paths],
            env={**os.environ, VARIABLE: told.name},
            check=False,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        output.seek(0)
        lines = [line.partition(" ") for line in told.read().splitlines()]
        failed = [test for when, _, test in lines if when == "call"]
        fixtures = [test for when, _, test in lines if when != "call"]
        return Ended(part, done.returncode, output.read(), failed, fixtures, time.monotonic() - began)


def tell(line: str, *tests: str) -> None:
    sys.stdout.write("\n  ".join((line, *tests)) + "\n")
    sys.stdout.flush()


def show(ended: Ended) -> None:
    tell(f"\n===== {ended.part}: {ended.seconds:.0f} s, exit status {ended.status}")
    tell(ended.output.decode(errors="replace"))


def main() -> int:
    # From the folder of the project: the parts that are named are in it.
    os.chdir(Path(__file__).parent.parent)
    # Compiled once: hundreds of processes start, and each would compile the whole package for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        parts = [pool.submit(ran, *part) for part in PARTS.items()]
        ended = [part.result() for part in parts]
    finally:
        # Whoever interrupts this does not wait for what has not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    for each in ended:
        show(each)
    tell(f"===== the suite: {time.monotonic() - began:.0f} s")
    failed = [test for each in ended for test in each.failed]
    fixtures = [test for each in ended for test in each.fixtures]
    # Such as a part that did not run to its end, or that told a secret: no test's name goes with it.
    broken = [each.part for each in ended if each.status not in (0, 1) or (each.status == 1 and not each.failed)]
    for title, names in (("failed:", failed), ("their fixtures failed:", fixtures), ("parts that failed:", broken)):
        if names:
            tell(title, *names)
    if broken or fixtures or len(failed) > RUN_AGAIN:
        return 1
    if failed:
        show(again := ran("once more, alone", failed))
        if again.status:
            tell("failed alone too:", *again.failed)
            return 1
        tell("failed beside others, passed alone:", *failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
