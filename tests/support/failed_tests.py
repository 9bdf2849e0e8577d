"""A pytest plugin that writes the ids of failed tests into the file that `FAILED_TESTS_FILE` names, one a line.

It writes no ids if the run also failed for another reason, because a repetition of the tests would not check that.
"""

import os
from pathlib import Path

import pytest

#: A check of the whole run sets this in the session's stash if it fails.
RUN_FAILED = pytest.StashKey[bool]()

_failed: dict[str, None] = {}
_failed_after_test = False


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    global _failed_after_test  # noqa: PLW0603 - pytest's hooks are functions
    if report.failed:
        _failed[report.nodeid] = None
        # Fixtures of the whole session are torn down after the last test.
        _failed_after_test = _failed_after_test or report.when == "teardown"


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if path := os.environ.get("FAILED_TESTS_FILE"):
        run_failed = session.stash.get(RUN_FAILED, False) or _failed_after_test
        only_tests_failed = session.exitstatus == pytest.ExitCode.TESTS_FAILED and not run_failed
        Path(path).write_text("\n".join(_failed) if only_tests_failed else "")
