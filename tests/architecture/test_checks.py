"""Checks of the code itself: layers, types, style."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Modules in one folder; `__init__.py` and subfolders do not count.
MAX_MODULES = 12
BIN = Path(sys.executable).parent


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "command",
    [
        ["lint-imports", "--no-cache"],
        ["ruff", "check", "--no-cache", "src", "tests", "bench", "training", "tools"],
        ["ruff", "format", "--no-cache", "--check", "src", "tests", "bench", "training", "tools"],
        ["mypy"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_check_reports_no_errors(command: list[str]) -> None:
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_source_files_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "src").rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 450
    }
    assert not long


def test_a_folder_has_few_modules() -> None:
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in (ROOT / "src").rglob("*")
        if folder.is_dir() and (count := len([*folder.glob("[!_]*.py")])) > MAX_MODULES
    }
    assert not crowded


def test_the_contract_against_cycles_lists_every_top_level_package() -> None:
    _, _, contract = (ROOT / ".importlinter").read_text("utf-8").partition("[importlinter:contract:no-rings]")
    floors = {f"gatehouse.{path.parent.name}" for path in (ROOT / "src/gatehouse").glob("*/__init__.py")}
    assert floors <= set(contract.split())
