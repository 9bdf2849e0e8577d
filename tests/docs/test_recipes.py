"""Each recipe of CONTRIBUTING.md is applied to a copy of the tree exactly as written, and the result is tested."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.launcher import LAUNCHER_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "tests", "docs", "tools", "bench", "training", "console/src")
#: the tests to run in the copy, by the recipe's title
TESTS = {
    "a kind of provider": [
        "tests/engine/providers/scenarios/test_responses.py",
        "tests/engine/providers/calls/test_calling.py",
        "tests/platform/tracing/test_exporter.py",
    ],
    "a pipeline stage": [
        "tests/engine/stages/calls/test_message_count.py",
        "tests/engine/test_pipeline.py",
        "tests/engine/test_scan.py",
    ],
}
#: the recipe that consists of one command, and the tests to run after it
GENERATED = "a family with a table"
GENERATED_TESTS = [
    "tests/platform/governance/test_notes.py",
    "tests/platform/scenarios/test_caps.py",
    "tests/contract/test_rights.py",
    "tests/contract/test_read_modify_write.py",
    "tests/contract/test_step_up.py",
    "tests/contract/test_versions.py",
    "tests/architecture/test_schema.py",
    "tests/docs/test_errors.py",
    "tests/docs/test_openapi.py",
    "tests/docs/test_pages.py",
]
#: the tests of the new family, and tests that fail if an entry in a list is missing
CHOSEN = "notes or every_family_with_a_limit or test_schema or test_errors or test_openapi or navigation"


class Step(NamedTuple):
    """A new file, or a change of an existing file."""

    path: str
    language: str
    text: str


def recipe_texts() -> dict[str, str]:
    """Return the text of each recipe by its title."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {
        part.partition("\n")[0].removeprefix("Recipe: "): part.partition("\n")[2]
        for part in parts
        if part.startswith("Recipe: ")
    }


def steps(text: str) -> Iterator[Step]:
    """Yield the code blocks, each with the last file that was named before it."""
    path = None
    pattern = r"`([\w/.-]+\.(?:py|md|ts))`|^    ```(\w+)\n(.*?)^    ```$"
    for item in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        if item[1]:
            path = item[1]
        else:
            assert path is not None, item[0]
            yield Step(path, item[2], re.sub(r"^    ", "", item[3], flags=re.MULTILINE))


def perform(step: Step, tree: Path) -> None:
    file = tree / step.path
    if step.language != "diff":
        assert not file.exists(), f"{step.path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step.text, "utf-8")
        return
    lines = step.text.splitlines()
    before = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    text = file.read_text("utf-8")
    assert text.count(before) == 1, f"{step.path} has these lines {text.count(before)} times:\n{before}"
    file.write_text(text.replace(before, after), "utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Yield a copy of the tree."""
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    return tmp_path


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python command in the copy."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    # The suite's launcher has imported the package that was not changed.
    environment.pop(LAUNCHER_VARIABLE, None)
    return subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def check(tree: Path, changed: Iterable[str], *tests: str) -> None:
    """Check that the changed files are formatted, the reference can be generated, and the tests pass."""
    python = sorted({path for path in changed if path.endswith(".py")})
    for command in (
        ["-m", "ruff", "check", *python],
        ["-m", "ruff", "format", "--check", *python],
        ["-m", "tools.reference"],
        ["-m", "pytest", "-x", *tests],
    ):
        result = run(tree, *command)
        assert result.returncode == 0, f"{command}\n{result.stdout[-4000:]}\n{result.stderr[-2000:]}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("title", TESTS)
def test_a_recipe_can_be_followed(title: str, tree: Path) -> None:
    recipe = list(steps(recipe_texts()[title]))
    for step in recipe:
        perform(step, tree)
    check(tree, [step.path for step in recipe], *TESTS[title])


@pytest.mark.timeout(600)
def test_the_recipe_of_a_family_names_every_file_that_the_generator_writes(tree: Path) -> None:
    text = recipe_texts()[GENERATED]
    (arguments,) = re.findall(r"^    make new-family NAME=(\w+) ONE=(\w+) CHAPTER=(\w+)$", text, re.MULTILINE)
    result = run(tree, "-m", "tools.new_family", *arguments)
    assert result.returncode == 0, result.stderr
    paths, _, by_hand = result.stdout.partition("To do by hand:")
    assert "make reference" in by_hand
    assert re.findall(r"^- `(.+?)` ", text, re.MULTILINE) == re.sub(r"/r\d{4}_", "/rNNNN_", paths).split()
    # The second run fails because the names are in use.
    written = {path: (tree / path).read_text("utf-8") for path in paths.split()}
    assert run(tree, "-m", "tools.new_family", *arguments).returncode == 2
    assert {path: (tree / path).read_text("utf-8") for path in written} == written
    check(tree, written, *GENERATED_TESTS, "-k", CHOSEN)


def test_every_recipe_is_followed_by_a_test() -> None:
    assert recipe_texts().keys() == {*TESTS, GENERATED}
