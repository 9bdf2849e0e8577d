"""The whole suite in two halves at once, for `make test`: tests with servers of their own wait, the others compute.

Exit status 0 where both halves pass. The second half's output follows the first's.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

#: Start servers, most of them with several processes.
SERVERS: Final = (
    "tests/cli", "tests/journeys", "tests/platform/keeper", "tests/platform/live", "tests/platform/operations",
    "tests/platform/upkeep", "tests/platform/test_jobs.py", "tests/platform/test_worker.py",
)  # fmt: skip


def main() -> int:
    # From the folder of the project: the parts that are named are in it.
    os.chdir(Path(__file__).parent.parent)
    # Compiled once: hundreds of processes start, and each would compile the whole package for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    pytest = [sys.executable, "-m", "pytest", "--durations=10", *sys.argv[1:]]
    with tempfile.TemporaryFile() as told:
        second = subprocess.Popen([*pytest, *SERVERS], stdout=told, stderr=subprocess.STDOUT)
        first = subprocess.run([*pytest, *(f"--ignore={part}" for part in SERVERS)], check=False)
        status = second.wait()
        told.seek(0)
        sys.stdout.write("\n" + told.read().decode(errors="replace"))
    return first.returncode or status


if __name__ == "__main__":
    sys.exit(main())
