"""A pytest plugin that writes the ids of failed tests into the file that `FAILED_TESTS_FILE` names, one a line."""

import os
from pathlib import Path

import pytest

_failed: dict[str, None] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_sessionfinish() -> None:
    if path := os.environ.get("FAILED_TESTS_FILE"):
        Path(path).write_text("\n".join(_failed))
