"""The whole suite's check that no secret was told: fails the run, and says where, if one was.

It sees the answers of the platform in this process, and of servers that run as processes where a client of this process
reads them; what tests print and log; the logs and databases of those servers, and the suite's own database. The secrets
are those that were minted in this process, told where `TELLING` says, or given in a request.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.leaks import WATCH, Leak

from gatehouse.foundation.secrets import tokens

_results: list[Leak] = []


def pytest_configure() -> None:
    minted = tokens._minted

    def watched(plaintext: str) -> tokens.Minted:
        WATCH.secret(plaintext, f"a minted {plaintext.partition('_')[0]}_")
        return minted(plaintext)

    tokens._minted = watched
    WATCH.secret("$argon2id$v=", "a password's hash")


def pytest_runtest_logstart(nodeid: str) -> None:
    # What a test was given is no place, and may be a secret.
    WATCH.during = f"in {nodeid.partition('[')[0]}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, text in report.sections:
        WATCH.saw(name, text)


@pytest.fixture(scope="session", autouse=True)
def _databases_are_looked_at(suite_home: Path) -> Iterator[None]:
    """Behind all that uses the database, and before it is stopped."""
    yield
    WATCH.during = ""
    if (suite_home / "postgres").exists():
        # Imports the platform, which tests without a database do not need.
        from tests.support.watched import see_databases

        see_databases(f"postgresql://postgres:@/postgres?host={suite_home / 'postgres'}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    _results.extend(WATCH.leaks())
    if _results:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _results:
        terminalreporter.section("secrets that were told", red=True)
        for leak in _results:
            terminalreporter.line(f"{leak.kind}\n  in {leak.place}\n  {leak.around}")
