"""Tests are at the path of the tested module, or in one of the listed folders."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
SOURCE: Final = TESTS.parent / "src" / "gatehouse"
#: Folders of tests that concern more than one module, with their subjects.
TOPICS: Final = {
    "architecture": "the code itself: imports, names, schema, folders",
    "contract": "every operation of the API: rights, bodies, read-modify-write, generated requests",
    "docs": "pages, recipes, the OpenAPI document",
    "journeys": "whole products in processes of their own, stock clients, upgrades",
    "parity": "the same verdict on platform and outpost",
    "support": "helpers; no tests",
    "training": "the training of the embedded models",
}
#: The folder, below that of a package, for tests of several modules of the package.
SCENARIOS: Final = "scenarios"
#: Source files with more lines are long. `MIN_SHARE` is the share of long files that have a test at their path.
MAX_UNTESTED_LINES: Final = 100
MIN_SHARE: Final = 0.8


def modules_of(package: Path) -> set[str]:
    """Return the names of a package's modules and subpackages."""
    return {path.stem for path in package.glob("*.py")} | {path.name for path in package.iterdir() if path.is_dir()}


def prefixes(name: str) -> Iterator[str]:
    """Yield the prefixes of a name: `a_b_c`, `a_b`, `a`."""
    words = name.split("_")
    for count in range(len(words), 0, -1):
        yield "_".join(words[:count])


def is_leaf(package: Path) -> bool:
    """Return whether a package is a family or has no subpackages. Its folder may have tests with any name."""
    return (package / "routes.py").exists() or not any(list(path.glob("*.py")) for path in package.iterdir())


def fault(test: Path) -> str | None:
    """Return what is wrong with the path of a test, relative to `tests`, or None."""
    *folders, name = test.parts
    if folders[0] in TOPICS:
        return None
    if SCENARIOS in folders:
        folders = folders[: folders.index(SCENARIOS)]
        return None if SOURCE.joinpath(*folders).is_dir() else f"{test}: there is no package {'/'.join(folders)}"
    package = SOURCE.joinpath(*folders)
    if not package.is_dir():
        return f"{test}: there is no package {'/'.join(folders)}; mirror one, or use a folder of {sorted(TOPICS)}"
    subject = name.removeprefix("test_").removesuffix(".py")
    if is_leaf(package) or modules_of(package).intersection(prefixes(subject)):
        return None
    return (
        f"{test}: its name begins with no module of {'/'.join(folders)};"
        f" name it test_<module>[_<aspect>].py, or move it to {'/'.join(folders)}/{SCENARIOS}/"
    )


def test_every_test_is_at_the_path_of_its_subject() -> None:
    faults = [text for path in sorted(TESTS.rglob("test_*.py")) if (text := fault(path.relative_to(TESTS)))]
    assert faults == []


@pytest.mark.parametrize(
    "path", ["engine/test_nothing.py", "nowhere/test_run.py", "nowhere/scenarios/test_run.py", "engine/dlp/test_x.py"]
)
def test_a_test_at_another_path_is_noticed(path: str) -> None:
    assert fault(Path(path))


def has_test(source: Path) -> bool:
    """Return whether there is a test at the path of the module or of its package."""
    module = source.relative_to(SOURCE).with_suffix("")
    package = module.parent
    folder = TESTS / package
    own = list(folder.glob(f"test_{module.name}*.py")) if module.name != "__init__" else []
    of_package = list((TESTS / package.parent).glob(f"test_{package.name}*.py"))
    leaf = [*folder.glob("test_*.py")] if is_leaf(SOURCE / package) else []
    return bool(own or of_package or leaf)


def test_the_tests_of_most_long_modules_are_found_by_path() -> None:
    long = [path for path in SOURCE.rglob("*.py") if len(path.read_text("utf-8").splitlines()) > MAX_UNTESTED_LINES]
    missing = sorted(str(path.relative_to(SOURCE)) for path in long if not has_test(path))
    share = 1 - len(missing) / len(long)
    assert share >= MIN_SHARE, f"{share:.0%} of {len(long)}; no test at the path of: {', '.join(missing)}"
