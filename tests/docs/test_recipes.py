"""Each recipe of CONTRIBUTING.md is followed from its text on a copy of the tree, and the result is tested there."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "tests", "docs", "tools", "bench", "training")
#: the tests that are run in the copy, by the recipe's title
TESTS = {
    "a kind of provider": [
        "tests/engine/providers/test_responses.py",
        "tests/engine/providers/test_calling.py",
        "tests/platform/tracing/test_exporter.py",
    ],
    "a pipeline stage": [
        "tests/engine/stages/test_message_count.py",
        "tests/engine/test_pipeline.py",
        "tests/engine/dlp/test_scan.py",
    ],
}


class Step(NamedTuple):
    """A new file, or an edit of one."""

    path: str
    language: str
    text: str


def recipes() -> dict[str, list[Step]]:
    """The steps of each recipe by its title."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {
        part.partition("\n")[0].removeprefix("Recipe: "): list(steps(part))
        for part in parts
        if part.startswith("Recipe: ")
    }


def steps(text: str) -> Iterator[Step]:
    """The code blocks, each with the file that was named last before it."""
    path = None
    for found in re.finditer(r"`([\w/.-]+\.(?:py|md))`|^    ```(\w+)\n(.*?)^    ```$", text, re.MULTILINE | re.DOTALL):
        if found[1]:
            path = found[1]
        else:
            assert path is not None, found[0]
            yield Step(path, found[2], re.sub(r"^    ", "", found[3], flags=re.MULTILINE))


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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("title", TESTS)
def test_a_recipe_can_be_followed(title: str, tmp_path: Path) -> None:
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    for step in recipes()[title]:
        perform(step, tmp_path)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}"}
    changed = sorted({step.path for step in recipes()[title] if step.path.endswith(".py")})
    for command in (
        ["-m", "ruff", "check", *changed],
        ["-m", "ruff", "format", "--check", *changed],
        ["-m", "tools.reference"],
        ["-m", "pytest", "-x", *TESTS[title]],
    ):
        run = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"{command}\n{run.stdout[-4000:]}\n{run.stderr[-2000:]}"


def test_every_recipe_is_followed_by_a_test() -> None:
    assert recipes().keys() == TESTS.keys()
