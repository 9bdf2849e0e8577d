"""Runs the whole suite in parts, several at once, for `make test`: some parts wait for servers while others compute.

A test that fails next to the other parts is run once more, alone, after all parts have ended. The output says whether
it passes alone: then it depends on the load of the machine. The suite fails in either case.

The exit status is 0 if all tests passed. The failed tests are listed at the end of the output.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from tests.support.launcher import LAUNCHER_VARIABLE, PYTEST, Launched, launch, launcher

#: More parts slow each other down by a sixth (six instead of five, on two cores). Fewer leave the cores idle while
#: servers start.
PARALLEL_PARTS: Final = 4

#: Failed tests that are run again. More failures than these are no effect of a busy machine.
MAX_REPEATED_TESTS: Final = 10

#: Writes the ids of the failed tests into the file that `FAILED_TESTS_FILE` names.
FAILED_TESTS_PLUGIN: Final = "tests.support.failed_tests"

#: The launcher has imported libraries with plugins for pytest, which therefore cannot rewrite their assertions.
NOT_REWRITTEN: Final = "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"

#: Tests that start servers, most of them with several processes, and wait for them.
SERVERS: Final = ("tests/cli", "tests/platform/keeper", "tests/platform/live", "tests/platform/operations")
#: Tests that start and stop whole platforms, one after the other.
STARTS: Final = ("tests/platform/installation", "tests/platform/worker", "tests/platform/test_worker.py")
#: One test that takes minutes.
MADE_UP: Final = "tests/contract/test_schemathesis.py"
#: Tests in a browser. They need more processor time than any other folder.
CONSOLE: Final = "tests/platform/console"
#: Folders that the parts below name. The part "others" has all other folders.
_NAMED: Final = ("outpost", "contract", "detection", "engine", "journeys", "platform", "cli", "portal")
_OWN: Final = (*SERVERS, *STARTS, "tests/platform/access", CONSOLE)
#: The paths of each part, those with the most processor time first, because the last part ends the suite.
#: The tests of the console are two parts, by the first letter of the module: one would outlast all others.
PARTS: Final[dict[str, Sequence[str]]] = {
    "console from F": (CONSOLE, f"--ignore-glob={CONSOLE}/test_[a-e]*"),
    "console to E": (CONSOLE, f"--ignore-glob={CONSOLE}/test_[!a-e]*"),
    "made up": (MADE_UP,),
    "others": ("tests", *(f"--ignore=tests/{part}" for part in _NAMED)),
    "platform": ("tests/platform", *(f"--ignore={path}" for path in _OWN)),
    "outpost": ("tests/outpost",),
    "journeys": ("tests/journeys",),
    "engine": ("tests/engine",),
    "access": ("tests/platform/access",),
    "starts": STARTS,
    "servers": SERVERS,
    "contract": ("tests/contract", f"--ignore={MADE_UP}"),
    "detection": ("tests/detection",),
    "portal": ("tests/portal",),
}

_running: Final[list[Launched]] = []


class Ended(NamedTuple):
    """The result of a part: pytest's exit status and output."""

    part: str
    status: int
    output: str
    seconds: float
    #: processor time of the part and of all child processes that it has waited for
    cpu_seconds: float
    #: ids of the failed tests; empty if the part failed for another reason, too
    failed_tests: list[str]

    @property
    def failures(self) -> list[str]:
        """The failed tests, as pytest names them in its summary."""
        return [f"  {line}" for line in self.output.splitlines() if line.startswith(("FAILED ", "ERROR "))]


def run_part(part: str, paths: Sequence[str]) -> Ended:
    began = time.monotonic()
    # The output goes to a file, because a pipe ends only when all processes that the tests started have ended.
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile() as failed:
        # The part is a fork of a process that has imported the package, and starts servers by the same process.
        arguments = [PYTEST, "-W", NOT_REWRITTEN, "-p", FAILED_TESTS_PLUGIN, "--durations=10", "-rsfE", *paths]
        environment = {**os.environ, "FAILED_TESTS_FILE": failed.name, LAUNCHER_VARIABLE: str(launcher().address)}
        running = launch(arguments, env=environment, cwd=Path.cwd(), log=output)
        _running.append(running)
        status = running.wait()
        output.seek(0)
        result = output.read().decode(errors="replace")
        failed_tests = Path(failed.name).read_text().splitlines()
    seconds = time.monotonic() - began
    ended = Ended(part, status, result, seconds, running.cpu_seconds, failed_tests)
    # The failed tests are printed immediately, and the outputs at the end of the run.
    summary = f"{part}: {ended.seconds:.0f} s, CPU {ended.cpu_seconds:.0f} s, exit status {ended.status}"
    sys.stderr.write("\n".join([summary, *ended.failures]) + "\n")
    return ended


def stop(*_: object) -> NoReturn:
    """Ends the running parts as Ctrl-C does, so that they stop the servers that they started."""
    for item in _running:
        item.send_signal(signal.SIGINT)
    sys.exit(128 + signal.SIGTERM)


def repeat(failed: Sequence[Ended]) -> Ended | None:
    """Runs the failed tests of all parts once more, alone. Returns None if no test can be repeated."""
    tests = [test for part in failed for test in part.failed_tests]
    interrupted = any(not part.failed_tests for part in failed)
    if not tests or interrupted or len(tests) > MAX_REPEATED_TESTS:
        return None
    return run_part("repeated tests", tests)


def main() -> int:
    # The paths of the parts are relative to the project's folder.
    os.chdir(Path(__file__).parent.parent)
    # Bytecode is kept: hundreds of processes start, and each would compile the whole package for itself.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # It is started here, because the threads below would each start one.
    launcher()
    signal.signal(signal.SIGTERM, stop)
    began = time.monotonic()
    pool = ThreadPoolExecutor(PARALLEL_PARTS)
    try:
        parts = [pool.submit(run_part, *part) for part in PARTS.items()]
        ended = [part.result() for part in parts]
    finally:
        # An interrupted run does not wait for parts that have not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    failed = [part for part in ended if part.status]
    repeated = repeat(failed)
    if repeated is not None:
        ended.append(repeated)
    lines = []
    for outcome in sorted(ended, key=lambda item: item.status != 0):
        lines += [f"\n===== {outcome.part}: {outcome.seconds:.0f} s, exit status {outcome.status}", outcome.output]
    lines.append(f"===== the suite: {time.monotonic() - began:.0f} s")
    skipped = [line for part in ended for line in part.output.splitlines() if line.startswith("SKIPPED ")]
    if skipped:
        lines += ["not run here:", *(f"  {line}" for line in sorted(set(skipped)))]
    passed_alone = repeated is not None and repeated.status == 0
    for outcome in failed:
        lines.append(f"{'failed next to other parts, passed alone' if passed_alone else 'failed'}: {outcome.part}")
        lines += outcome.failures
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
