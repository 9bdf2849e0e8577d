"""Runs the parsers for requests and replies under a coverage-guided fuzzer (atheris, which uses libFuzzer). A run takes
ten minutes, five for each target.

    .venv/bin/python bench/fuzz.py                          # reply: the HTTP client's parser; request: the ingress
    .venv/bin/python bench/fuzz.py --only reply --seconds 60
    .venv/bin/python bench/fuzz.py --only reply --again bench/out/fuzz/reply/crash-...     # one input, with traceback
    .venv/bin/python bench/fuzz.py --seeds                  # every seed once, without the fuzzer
    .venv/bin/python bench/fuzz.py --keep                   # add new useful inputs to bench/fuzz/seeds
    INGRESS=uvicorn .venv/bin/python bench/fuzz.py --only request                          # the other ingress

The docstrings of `rig/fuzz_reply.py` and `rig/fuzz_request.py` list what counts as a fault. The exit status is 1 if an
input causes a fault or takes longer than ten seconds, or if the memory of the process grows. It is 2 if the fuzzer
cannot be installed.
"""

import argparse
import asyncio
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rig import install

TARGETS = ("reply", "request")
HERE = Path(__file__).parent
SEEDS = HERE / "fuzz" / "seeds"
OUT = HERE / "out" / "fuzz"
ENV = HERE / "out" / "env"

#: Maximum bytes of an input. The limits of the parsers for longer inputs have their own tests.
MAX_INPUT_BYTES = 1024
#: Seconds after which one input counts as hung. Usually, thousands of inputs run per second.
HANG = 10
#: MiB by which the memory of the process may grow in the second half. The fuzzer itself keeps interesting inputs.
GROWTH = 16.0
#: Maximum bytes of a new seed. It keeps the seeds small.
KEPT_BYTES = 256


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--again", type=Path, help="run this one input only")
    parser.add_argument("--seeds", action="store_true", help="run every seed once; needs no fuzzer")
    parser.add_argument("--keep", action="store_true", help="add what covers more to the seeds")
    parser.add_argument("--env", type=Path, default=ENV, help="where the fuzzer is installed")
    parser.add_argument("--inside", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser.parse_args()


def inside(target: str, env: Path, flags: list[str]) -> None:
    """Run the fuzzer in this process. Does not return."""
    sys.path.append(str(env / "atheris"))
    import atheris  # noqa: PLC0415 - is not a dependency of the project

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    module = {"reply": ("gatehouse.foundation.outbound",), "request": ("gatehouse.ingress", "uvicorn.protocols")}
    with atheris.instrument_imports(include=list(module[target])):
        one = importlib.import_module(f"rig.fuzz_{target}").one
    # The fuzzer starts itself again through a shell to compare inputs.
    itself = shlex.join(command(target, env))
    atheris.Setup([itself, *flags], lambda data: loop.run_until_complete(one(data)))
    atheris.Fuzz()


def command(target: str, env: Path, *flags: str) -> list[str]:
    return [sys.executable, __file__, "--only", target, "--env", str(env), "--inside", *flags]


def seeds(target: str) -> None:
    one = importlib.import_module(f"rig.fuzz_{target}").one

    async def run_seeds() -> int:
        results = sorted((SEEDS / target).iterdir())
        for seed in results:
            try:
                async with asyncio.timeout(HANG):
                    await one(seed.read_bytes())
            except BaseException:
                print(f"{target}: {seed}", file=sys.stderr)
                raise
        return len(results)

    print(f"{target:8}{asyncio.run(run_seeds()):>10} seeds")


class Growth:
    """Records the resident memory of a process until the process ends."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        import psutil  # noqa: PLC0415 - the project's Python has it

        self.seen: list[float] = []
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                resident = watched.memory_info().rss / 1024**2
            except psutil.Error:
                break
            if resident:
                # A process that has ended has no resident memory.
                self.seen.append(resident)
            time.sleep(0.5)
        process.wait()

    @property
    def since_halfway(self) -> float:
        """Return the growth since halfway in MiB. Both values are medians of several samples."""
        if len(self.seen) < 200:
            # The run is too short to distinguish growth from the start of the process.
            return 0.0
        tenth, half = len(self.seen) // 10, len(self.seen) // 2
        return sorted(self.seen[-tenth:])[tenth // 2] - sorted(self.seen[half : half + tenth])[tenth // 2]


def fuzz(target: str, seconds: int, env: Path) -> bool:
    folder = OUT / target
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    flags = [
        f"-max_total_time={seconds}", f"-timeout={HANG}", f"-max_len={MAX_INPUT_BYTES}", "-rss_limit_mb=1024",
        "-print_final_stats=1",
        f"-artifact_prefix={folder}/", f"-dict={HERE / 'fuzz' / 'http.dict'}", str(corpus), str(SEEDS / target),
    ]  # fmt: skip
    with log.open("wb") as out:
        running = subprocess.Popen(command(target, env, *flags), stdout=out, stderr=subprocess.STDOUT)
        growth = Growth(running)
    text = log.read_text(errors="replace")
    runs = re.search(r"number_of_executed_units: (\d+)", text)
    edges = re.findall(r"cov: (\d+)", text)
    print(
        f"{target:8}{int(runs[1]) if runs else 0:>10} inputs in {seconds} s, {edges[-1] if edges else '?'} edges,"
        f" {len(list(corpus.iterdir()))} inputs in the corpus, {growth.seen[-1] if growth.seen else 0:.0f} MiB,"
        f" {growth.since_halfway:+.1f} since halfway"
    )
    if running.returncode != 0:
        print(
            f"{text[-4000:]}\n{target}: exit status {running.returncode}; the input is under {folder}", file=sys.stderr
        )
        return False
    if growth.since_halfway > GROWTH:
        print(f"{target}: grew by {growth.since_halfway:.1f} MiB since halfway", file=sys.stderr)
        return False
    return runs is not None


def keep(target: str, env: Path) -> None:
    """Add inputs of the corpus that cover code which the seeds do not cover to the seeds. Of several inputs with the
    same coverage, add the smallest."""
    small = OUT / target / "small"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir(parents=True)
    for path in (OUT / target / "corpus").iterdir():
        if path.stat().st_size <= KEPT_BYTES:
            shutil.copy(path, small)
    merging = command(target, env, "-merge=1", str(SEEDS / target), str(small))
    subprocess.run(merging, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> int:
    install.use_project_python()
    arguments = options()
    if arguments.inside is not None:
        inside(arguments.only, arguments.env, arguments.inside)
    targets = [arguments.only] if arguments.only else list(TARGETS)
    if arguments.seeds:
        for target in targets:
            seeds(target)
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        install.atheris(arguments.env, OUT / "install.log")
    except subprocess.CalledProcessError:
        print(f"{install.ATHERIS} cannot be installed; {OUT / 'install.log'} says why", file=sys.stderr)
        return 2
    if arguments.again is not None:
        return subprocess.run(command(targets[0], arguments.env, str(arguments.again)), check=False).returncode
    os.nice(19)
    good = [fuzz(target, arguments.seconds // len(targets), arguments.env) for target in targets]
    if arguments.keep:
        for target in targets:
            keep(target, arguments.env)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
