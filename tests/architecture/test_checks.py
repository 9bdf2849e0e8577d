"""Checks of the code itself: layers, types, style."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Modules in one folder; `__init__.py` and subfolders are not counted.
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


@pytest.mark.parametrize("name", ["floors", "no-rings"])
def test_the_contracts_list_every_top_level_package(name: str) -> None:
    _, _, contract = (ROOT / ".importlinter").read_text("utf-8").partition(f"[importlinter:contract:{name}]")
    packages = {f"gatehouse.{path.parent.name}" for path in (ROOT / "src/gatehouse").glob("*/__init__.py")}
    assert packages <= set(contract.partition("[importlinter:")[0].split())


def test_the_contract_of_families_lists_modules_that_exist() -> None:
    _, _, contract = (ROOT / ".importlinter").read_text("utf-8").partition("[importlinter:contract:family]")
    modules = re.findall(r"\((\w+)\)", contract.partition("[importlinter:")[0])
    package = ROOT / "src/gatehouse"
    families = [*package.glob("platform/*/*/*.py"), *package.glob("portal/*/*.py")]
    assert set(modules) <= {path.stem for path in families}


def test_the_table_of_chapters_lists_every_family() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE)
    platform = ROOT / "src/gatehouse/platform"
    chapters = {
        path.parent.name
        for path in platform.glob("*/__init__.py")
        if any(path.parent.glob("*/routes.py")) and path.parent.name != "administration"
    }
    listed = {chapter: set(re.findall(r"`(\w+)`", families)) for chapter, families in rows if chapter in chapters}
    assert listed.keys() == chapters
    packages = {
        chapter: {path.parent.name for path in (platform / chapter).glob("*/__init__.py")} for chapter in chapters
    }
    missing = {chapter: names - listed[chapter] for chapter, names in packages.items() if names - listed[chapter]}
    assert missing == {}
