"""Measures which faults the tests detect. It changes one expression at a time, and runs the tests nearest to it.

    .venv/bin/python -m bench.mutate [--sample 10] [--seed 1] [--area engine ...] [--page bench/mutants.md]

For each area, `--sample` mutants are chosen at random. A mutant is killed if a test fails or the tests do not end
within `TIMEOUT_SECONDS`. It survives if the tests nearest to it pass, and then all tests of its area pass. Tests that
kill a mutant must pass without the mutant. This is checked once for each set of tests, when it first kills a mutant.
The sources are copied, so that the checkout is not changed. Surviving mutants are printed. With `--page`, they are also
written to a Markdown page, where they replace the sections of the areas that were run."""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "src/gatehouse"

#: the source folders of each area, and its tests in addition to those at the path of a source file
AREAS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "engine": (("engine/stages", "engine/routing", "engine/dlp"), ("tests/engine",)),
    "detection": (("detection/normalise", "detection/validators", "detection"), ("tests/detection",)),
    "spending": (("platform/spending", "policy"), ("tests/platform/spending", "tests/platform/routing")),
    "access": (("platform/access",), ("tests/platform/access",)),
    "journal": (("foundation/journal", "platform/keeper"), ("tests/foundation/journal", "tests/platform/keeper")),
    "portal": (("portal",), ("tests/portal",)),
}
#: the nearest tests of folders that have no tests at their own path
NEAREST: Final[dict[str, tuple[str, ...]]] = {
    "platform/access/browser": ("tests/platform/access/test_sign_in_browser.py",),
    "platform/access/tokens": (
        "tests/platform/access/test_tokens_issuance.py",
        "tests/platform/access/test_openid.py",
        "tests/platform/access/test_oauth_clients.py",
    ),
    "portal/sso": ("tests/portal/scenarios/with_platform/test_sign_in.py",),
}

#: time limit of one run of tests; the tests of the slowest area take a third of it on two free cores
TIMEOUT_SECONDS: Final = 900.0
#: time in which an interrupted pytest must stop its PostgreSQL and its servers
GRACE_SECONDS: Final = 60.0
#: the start of a new page
TITLE: Final = (
    "# Mutants\n\nChanges that `python -m bench.mutate` made to the sources, one at a time, and no test noticed."
)

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    area: str
    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: `{self.before}` -> `{self.after}`"


def changed(node: ast.AST) -> ast.AST | None:
    """Return the node with one change, or None if no operator applies to it."""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=[right]) if type(op) in _COMPARISONS:
            return ast.Compare(left, [_COMPARISONS[type(op)]()], [right])
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC and not _is_text(left, right):
            return ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
        case ast.Constant(value=int() as value):
            return ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=("min" | "max") as name), args=args, keywords=keywords):
            return ast.Call(ast.Name("max" if name == "min" else "min"), args, keywords)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise():
            return ast.Pass()
    return None


def _is_text(*nodes: ast.expr) -> bool:
    return any(
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in nodes
    )


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node inside functions, except annotations, defaults and log calls."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                if not ast.unparse(statement).startswith(("log.", "assert ")):
                    yield from ast.walk(statement)


def mutants_of(area: str, path: Path) -> list[Mutant]:
    source = path.read_text()
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    mutants = {}
    for node in nodes_that_run(ast.parse(source)):
        if (after := changed(node)) is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = f"({ast.unparse(after)})" if isinstance(node, ast.expr) else ast.unparse(after)
        before = source.encode()[start:end].decode()
        mutants[start, end] = Mutant(area, path, node.lineno, start, end, " ".join(before.split()), text)
    return list(mutants.values())


def drawn(area: str, sample: int, chance: random.Random) -> list[Mutant]:
    files = {
        path for folder in AREAS[area][0] for path in (PACKAGE / folder).rglob("*.py") if "migrations" not in path.parts
    }
    everything = [mutant for path in sorted(files) for mutant in mutants_of(area, path)]
    return chance.sample(everything, min(sample, len(everything)))


def nearest_tests(mutant: Mutant) -> tuple[str, ...]:
    """Return the test file or folder at the path of the mutant, or that of the nearest folder above it."""
    place = mutant.path.relative_to(PACKAGE)
    own = ROOT / "tests" / place.parent / f"test_{place.stem}.py"
    if own.exists():
        return (str(own.relative_to(ROOT)),)
    for folder in place.parents:
        if str(folder) in NEAREST:
            return NEAREST[str(folder)]
        named = ROOT / "tests" / folder.parent / f"test_{folder.name}.py"
        if named.exists():
            return (str(named.relative_to(ROOT)),)
        if str(folder) != "." and (ROOT / "tests" / folder).is_dir():
            return (f"tests/{folder}",)
    return AREAS[mutant.area][1]


def failure(copy: Path, tests: tuple[str, ...]) -> str | None:
    """Run the tests on the copy. Return the first test that fails, `timeout` if they do not end in time, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--timeout=120", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            command, cwd=copy, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as running,
    ):
        try:
            if running.wait(TIMEOUT_SECONDS) == 0:
                return None
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            _stop(running)
        output.seek(0)
        summary = (line.split()[1] for line in output if line.startswith(("FAILED ", "ERROR ")))
        return next(summary, "pytest itself")


def _stop(running: subprocess.Popen[bytes]) -> None:
    """Interrupt a pytest that is still running. Only pytest can stop its PostgreSQL, which runs in its own session."""
    if running.poll() is None:
        running.send_signal(signal.SIGINT)
        try:
            running.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)


def killer(copy: Path, mutant: Mutant, pass_without_mutant: set[tuple[str, ...]]) -> str | None:
    """Run the tests nearest to the mutant, then all tests of its area. Return the test that fails, or None if the
    mutant survives. Sets of tests that were run without the mutant are added to `pass_without_mutant`."""
    target = copy / mutant.path.relative_to(ROOT)
    original = target.read_bytes()
    for tests in dict.fromkeys((nearest_tests(mutant), AREAS[mutant.area][1])):
        target.write_bytes(original[: mutant.start] + mutant.after.encode() + original[mutant.end :])
        try:
            failed = failure(copy, tests)
        finally:
            target.write_bytes(original)
        if failed is not None:
            if tests not in pass_without_mutant and (fails := failure(copy, tests)) is not None:
                sys.exit(f"{fails} fails without a mutant, so that every mutant would count as killed")
            pass_without_mutant.add(tests)
            return failed
    return None


def section(area: str, tried: int, survivors: list[Mutant], arguments: argparse.Namespace) -> str:
    """Return the section of the page for an area."""
    lines = [
        f"{area}",
        "",
        f"`--sample {arguments.sample} --seed {arguments.seed}`: {tried} mutants, {tried - len(survivors)} killed, "
        f"{len(survivors)} survived",
        "",
        *(f"- {mutant}" for mutant in survivors),
    ]
    return "\n".join(lines)


def write_section(page: Path, area: str, text: str) -> None:
    """Write the section of an area to the page. It replaces an older section."""
    old = page.read_text().split("\n## ") if page.exists() else [TITLE]
    sections = {text.split("\n", 1)[0]: text.strip() for text in old[1:]} | {area: text.strip()}
    page.write_text("\n\n## ".join([old[0].strip(), *(sections[name] for name in sorted(sections))]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=10, help="mutants of each area")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", nargs="*", choices=sorted(AREAS), default=sorted(AREAS))
    parser.add_argument("--page", type=Path, help="Markdown page to write the result to")
    arguments = parser.parse_args()
    # Background jobs of a shell, and their child processes, would otherwise ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results: dict[str, tuple[int, list[Mutant]]] = {}
    with tempfile.TemporaryDirectory(prefix="gatehouse-mutants-") as folder:
        copy = Path(folder)
        for name in ("src", "tests", "bench", "docs", "deploy"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "mkdocs.yml", "README.md"):
            shutil.copy(ROOT / name, copy / name)
        pass_without_mutant: set[tuple[str, ...]] = set()
        for area in arguments.area:
            left = []
            sample = drawn(area, arguments.sample, random.Random(f"{arguments.seed} {area}"))
            for mutant in sample:
                began = time.monotonic()
                failed = killer(copy, mutant, pass_without_mutant)
                outcome = "SURVIVED" if failed is None else f"killed by {failed}"
                print(f"{time.monotonic() - began:5.0f} s  {mutant}  {outcome}", flush=True)
                if failed is None:
                    left.append(mutant)
            results[area] = len(sample), left
            if arguments.page:
                write_section(arguments.page, area, section(area, len(sample), left, arguments))
    for area, (tried, left) in results.items():
        print(f"{area}: {tried - len(left)} of {tried} killed")


if __name__ == "__main__":
    main()
