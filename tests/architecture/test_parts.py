"""A test that fails next to other parts of the suite is run once more, alone."""

from pathlib import Path

import pytest
from tests import parts
from tests.parts import Ended

PASSES_AT_THE_SECOND_TRY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("value", ["a b", "c-d"])
def test_flaky(value):
    marker = Path(__file__).with_name(value)
    exists = marker.exists()
    marker.touch()
    assert exists or value == "a b"

def test_sound():
    assert True
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of tests in the working directory."""
    monkeypatch.setenv("PYTHONPATH", str(Path(parts.__file__).parents[1]))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "test_it.py"


def run(path: Path) -> Ended:
    return parts.run_part("part", [path.name])


def test_a_test_that_passes_alone_is_repeated_alone(file: Path) -> None:
    file.write_text(PASSES_AT_THE_SECOND_TRY)
    first = run(file)
    assert first.status == 1
    assert [test.partition("::")[2] for test in first.failed_tests] == ["test_flaky[c-d]"]
    second = parts.repeat([first])
    assert second is not None
    assert second.status == 0
    assert "1 passed" in second.output


def test_a_failed_check_of_the_whole_run_is_not_repeated(file: Path) -> None:
    check = "from tests.support.failed_tests import RUN_FAILED\ndef pytest_sessionfinish(session):\n"
    file.with_name("conftest.py").write_text(
        check + "    session.stash[RUN_FAILED] = True\n    session.exitstatus = 1\n"
    )
    file.write_text(PASSES_AT_THE_SECOND_TRY)
    ended = run(file)
    assert ended.status == 1
    assert parts.repeat([ended]) is None


def test_a_test_that_fails_again_fails_the_suite(file: Path) -> None:
    file.write_text("def test_broken():\n    assert False\n")
    second = parts.repeat([run(file)])
    assert second is not None
    assert second.status == 1


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit(3)",
        "import pytest\n@pytest.mark.parametrize('n', range(11))\ndef test_broken(n):\n    assert False\n",
        "import pytest\ndef test_broken():\n    assert False\ndef test_stop():\n    pytest.exit('over', 2)\n",
        "import pytest\ndef test_broken():\n    assert False\n"
        "@pytest.fixture(scope='session')\ndef server():\n    yield\n    raise OSError\n"
        "def test_with_server(server): ...\n",
    ],
    ids=["pytest fails", "many tests fail", "pytest is interrupted", "a fixture fails at the end"],
)
def test_other_failures_are_not_repeated(file: Path, source: str) -> None:
    file.write_text(source)
    ended = run(file)
    assert ended.status != 0
    assert parts.repeat([ended]) is None
