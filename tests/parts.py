"""The whole suite in five parts at once, for `make test`: tests with servers of their own wait, the others compute.

Exit status 0 where all parts pass. The output of the others follows the first's.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

#: Start servers, most of them with several processes, and wait for them.
JOURNEYS: Final = ("tests/journeys",)
SERVERS: Final = (
    "tests/cli", "tests/platform/keeper", "tests/platform/live", "tests/platform/operations",
    "tests/platform/upkeep", "tests/platform/test_jobs.py", "tests/platform/test_worker.py",
)  # fmt: skip
#: The same of the other two deployables.
BESIDE: Final = ("tests/outpost", "tests/portal")
#: The platform in the test's own process.
PLATFORM: Final = ("tests/platform",)
#: One long test among others; with those that start servers, whose part is the shortest.
CONTRACT: Final = ("tests/contract",)


def main() -> int:
    # From the folder of the project: the parts that are named are in it.
    os.chdir(Path(__file__).parent.parent)
    # Compiled once: hundreds of processes start, and each would compile the whole package for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    pytest = [sys.executable, "-m", "pytest", "--durations=10", *sys.argv[1:]]
    parts = [
        [*pytest, *JOURNEYS],
        [*pytest, *CONTRACT, *SERVERS],
        [*pytest, *BESIDE],
        [*pytest, *PLATFORM, *(f"--ignore={part}" for part in SERVERS)],
    ]
    others = [f"--ignore={part}" for part in (*JOURNEYS, *CONTRACT, *SERVERS, *BESIDE, *PLATFORM)]
    with contextlib.ExitStack() as held:
        told = [held.enter_context(tempfile.TemporaryFile()) for _ in parts]
        running = [
            subprocess.Popen(command, stdout=into, stderr=subprocess.STDOUT)
            for command, into in zip(parts, told, strict=True)
        ]
        first = subprocess.run([*pytest, *others], check=False)
        statuses = [first.returncode, *(each.wait() for each in running)]
        for output in told:
            output.seek(0)
            sys.stdout.write("\n" + output.read().decode(errors="replace"))
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
