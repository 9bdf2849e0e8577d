"""Checks for the whole suite that no secret was disclosed. If a secret was disclosed, the run fails and names the
place.

It searches: the answers of the platform in this process, and of server processes to clients in this process; the output
and logs of tests; the logs and databases of these servers; the suite's own database. The secrets are those that were
created in this process, returned by the operations of `secret_fields`, or sent in a request.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.failed_tests import RUN_FAILED
from tests.support.leaks import LEAK_DETECTOR, Leak

from gatehouse.foundation.secrets import tokens

_results: list[Leak] = []


def pytest_configure() -> None:
    minted = tokens._minted

    def watched(plaintext: str) -> tokens.Minted:
        LEAK_DETECTOR.add_secret(plaintext, f"a minted {plaintext.partition('_')[0]}_")
        return minted(plaintext)

    tokens._minted = watched
    LEAK_DETECTOR.add_secret("$argon2id$v=", "a password's hash")


def pytest_runtest_logstart(nodeid: str) -> None:
    # The parameters of a test are left out, because they may contain a secret.
    LEAK_DETECTOR.during = f"in {nodeid.partition('[')[0]}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, text in report.sections:
        LEAK_DETECTOR.add_text(name, text)


@pytest.fixture(scope="session", autouse=True)
def _databases_are_looked_at(suite_home: Path) -> Iterator[None]:
    """Runs after everything that uses the database, and before it is stopped."""
    yield
    LEAK_DETECTOR.during = ""
    if (suite_home / "postgres").exists():
        # Imported here, because it imports the platform, which tests without a database do not need.
        from tests.support.watched import see_databases

        see_databases(f"postgresql://postgres:@/postgres?host={suite_home / 'postgres'}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    _results.extend(LEAK_DETECTOR.leaks())
    if _results:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        session.stash[RUN_FAILED] = True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _results:
        terminalreporter.section("secrets that were told", red=True)
        for leak in _results:
            terminalreporter.line(f"{leak.kind}\n  in {leak.place}\n  {leak.around}")
