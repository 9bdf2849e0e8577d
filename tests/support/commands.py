"""Runs `gatehouse ...` in the test's own process and returns status, output and errors.

A separate process would spend seconds on imports. Do not use it for commands that fork, serve, or change global state
of the process, such as `serve`.
"""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout

import pytest

from gatehouse.cli import main


def run_command(*words: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command with exactly this environment. Raises the exceptions that `main` raises."""
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["gatehouse", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    status = ended.value.code
    assert status is None or isinstance(status, int), status
    return subprocess.CompletedProcess(words, status or 0, output.getvalue(), errors.getvalue())
