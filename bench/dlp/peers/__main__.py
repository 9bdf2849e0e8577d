"""Compares the pattern tier with other tools: `python -m bench.dlp.peers --truth FOLDER [--gitleaks FILE] [--publish]`.

Each engine (`engines.py`) runs in its own process with its own Python, on the same texts, one engine at a time.
`--gitleaks` is the rules file of gitleaks (`config/gitleaks.toml` in its repository). Without it, the row is missing.
There are three rounds. In each round, all processes are started again, and each text is measured with one engine after
the other. The costs are CPU times, and medians over the rounds and over the texts (several places in prose, code and
chat). The start time is wall-clock time. The start time and the memory are medians over the rounds. F1 and the false
findings are those of the last round. Times can only be compared within one run.

The first run installs the other tools; llm-guard needs 5 GB. Each run compiles Hyperscan's automaton, which takes a
minute. All figures are written to `bench/out/dlp-peers.json`. `--publish` writes docs/benchmarks-dlp.md and its
picture."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.dlp.peers import install, judging, labels, page
from bench.dlp.peers.engines import ENGINES, Finding, prepare_hyperscan
from bench.dlp.speed import LENGTHS, TEXTS, samples
from bench.dlp.speed import read as read_whole
from bench.rig.install import ROOT

OUT: Final = ROOT / "bench" / "out"
#: Number of texts of each kind and length.
PLACES: Final = 3
#: Kind and length of the first text that a process sees.
COLD: Final = ("prose", 10_000)
#: Processor seconds for which a text is measured.
SECONDS: Final = 0.1
#: Engines that have a second row with a minimum score. Presidio has no minimum score by default.
LEAST_SCORES: Final = {"presidio": 0.1, "presidio_patterns": 0.1}


class Worker:
    def __init__(self, process: "subprocess.Popen[str]", began: float) -> None:
        self._process = process
        self.made = self._answer()
        self.made["start_s"] = time.perf_counter() - began

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"no answer from {self._process.args}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def started(name: str, python: Path, settings: Mapping[str, str]) -> Iterator[Worker]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    # Each engine uses one thread. The hash seed is fixed, because the findings of llm-guard depend on the order of
    # sets.
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **settings}
    command = [str(python), "-m", "bench.dlp.peers.worker", name]
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        try:
            yield Worker(process, began)
        finally:
            process.terminate()


def timed_texts(truth: Path) -> dict[tuple[str, int], list[str]]:
    """Return the texts to measure, by kind and length."""
    wholes = {kind: read_whole(truth, file) for kind, file in TEXTS.items()}
    texts = {}
    for kind, whole in wholes.items():
        for length in LENGTHS:
            several = samples(whole, length)
            texts[kind, length] = several[:: max(1, len(several) // PLACES)][:PLACES]
    return texts


def quality(worker: Worker, name: str, sets: Mapping[str, judging.Texts]) -> dict[str, Any]:
    """Return the figures of an engine by row: one row for all findings and, for some engines, one row for findings with
    a minimum score."""
    findings: dict[str, dict[str, list[Finding]]] = {}
    for item, texts in sets.items():
        result = worker.ask(find=[text.text for text in texts.values()])["findings"]
        findings[item] = {identity: [tuple(one) for one in some] for identity, some in zip(texts, result, strict=True)}
    rows = {name: figures(name, worker.made["types"], sets, findings)}
    if (least := LEAST_SCORES.get(name)) is not None:
        surer = {
            item: {identity: [one for one in some if one[3] >= least] for identity, some in result.items()}
            for item, result in findings.items()
        }
        rows[f"{name}_surer"] = figures(name, worker.made["types"], sets, surer)
    return rows


def figures(
    name: str, types: list[str], sets: Mapping[str, judging.Texts], findings: Mapping[str, judging.Findings]
) -> dict[str, Any]:
    named, claims = labels.BY_ENGINE[name](types), labels.claims(name, types)
    return {
        "f1": {
            title: judging.f1(sets[column.set], findings[column.set], named, column, claims)
            for title, column in judging.COLUMNS.items()
        },
        "false": judging.false_findings(sets, findings, named) if "secret" in claims else None,
    }


def measure(names: list[str], truth: Path, rounds: int, settings: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    pythons = {name: install.python(name) for name in names}
    sets, texts = judging.read(truth), timed_texts(truth)
    rows: dict[str, dict[str, Any]] = {}
    samples_of: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in names}
    for number in range(rounds):
        with ExitStack() as stack:
            workers = {}
            for name in names:
                print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
                workers[name] = stack.enter_context(started(name, pythons[name], settings))
                cold = workers[name].ask(once=texts[COLD][0])["seconds"]
                samples_of[name]["cold_us_per_kb"].append(cold * 1e9 / COLD[1])
                # This is done in each round, so that an engine has seen all sets before it is measured.
                rows |= quality(workers[name], name, sets)
            print(f"round {number + 1}: times", file=sys.stderr, flush=True)
            for name, costs in round_of_costs(workers, texts).items():
                for metric, value in costs.items():
                    samples_of[name][metric].append(value)
    for row, own in rows.items():
        name = row.removesuffix("_surer")
        own["samples"] = samples_of[name]
        own["version"] = install.version(name)
        own |= {metric: median(values) for metric, values in samples_of[name].items()}
    return rows


def round_of_costs(
    workers: Mapping[str, Worker], texts: Mapping[tuple[str, int], list[str]]
) -> dict[str, dict[str, float]]:
    """Measure each text with one engine after the other. Return for each engine the time of its start and its memory,
    and for each length the median of the kinds and the ratio of this median to that of the first engine."""
    per_kb: dict[tuple[str, int], list[float]] = defaultdict(list)
    for (_, length), some in texts.items():
        several: dict[str, list[float]] = defaultdict(list)
        for text in some:
            for name, worker in workers.items():
                several[name].append(worker.ask(time=text, seconds=SECONDS)["seconds"] * 1e9 / length)
        for name, times in several.items():
            per_kb[name, length].append(median(times))
    costs: dict[str, dict[str, float]] = {}
    ours = next(iter(workers))
    for name, worker in workers.items():
        costs[name] = {"start_s": worker.made["start_s"], "mib": worker.ask(rss=True)["rss_kib"] / 1024}
        for length in LENGTHS:
            costs[name][f"us_per_kb_{length}"] = median(per_kb[name, length])
            costs[name][f"ratio_{length}"] = median(per_kb[name, length]) / median(per_kb[ours, length])
    return costs


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="the folder of the labelled texts")
    parser.add_argument("--gitleaks", type=Path, help="the rules file of gitleaks, gitleaks.toml")
    parser.add_argument("--only", help="engines, with commas between; the first is what others are compared with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks-dlp.md and its picture")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(ENGINES)
    if arguments.gitleaks is None:
        names = [name for name in names if name != "gitleaks"]
    OUT.mkdir(parents=True, exist_ok=True)
    automaton = OUT / "dlp-peers.hyperscan"
    too_large = prepare_hyperscan(automaton) if "hyperscan" in names else 0
    settings = {"HYPERSCAN_AUTOMATON": str(automaton), "GITLEAKS_RULES": str((arguments.gitleaks or Path()).absolute())}
    run = {
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": arguments.rounds,
        "machine": f"{os.cpu_count()} processor cores ({processor()}), Python {platform.python_version()}",
        "too_large_for_hyperscan": too_large,
        "rows": measure(names, arguments.truth.absolute(), arguments.rounds, settings),
    }
    written = OUT / "dlp-peers.json"
    written.write_text(json.dumps(run, indent=1) + "\n")
    print(page.table(run))
    if arguments.publish:
        page.publish(run)


if __name__ == "__main__":
    main()
