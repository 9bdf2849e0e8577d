"""Programs from the system's packages that some tests need, and the rule that CI skips nothing.

A developer without Chromium, jq or nginx can run everything else: the tests that need them are skipped and named
at the end of the run. With `CI=true` a skipped test is a failed test.
"""

import os
import shutil
from collections.abc import Generator
from typing import Final

import pytest

#: each program and the command that installs it on Debian
INSTALL_COMMANDS: Final = {
    "chromium-headless-shell": "apt-get install chromium-headless-shell",
    "chromium": "apt-get install chromium",
    "jq": "apt-get install jq",
    "nginx": "apt-get install nginx",
}


def find(program: str) -> str | None:
    """Returns the program's path, or None where it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a test where none of the programs is installed, with the command that installs the first as the reason."""
    reason = f"{programs[0]} is not installed: {INSTALL_COMMANDS[programs[0]]}"
    return pytest.mark.skipif(not any(map(find, programs)), reason=reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"Skipped tests fail with CI=true. {reason}"
    return report
