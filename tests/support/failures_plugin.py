"""Tells the suite's parts which tests failed, and where: a line each in the file that `GATEHOUSE_FAILURES` names."""

import os
from pathlib import Path

import pytest

VARIABLE = "GATEHOUSE_FAILURES"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        with Path(os.environ[VARIABLE]).open("a") as told:
            told.write(f"{report.when} {report.nodeid}\n")
