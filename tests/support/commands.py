"""`gatehouse ...` in the test's own process, as its user sees it: status, output and errors.

A process of its own imports for seconds what this one has already. Commands that fork, serve or change what a whole
process has, such as `serve`, are not for here.
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
    """Runs the command with this environment and no other. An exception that `main` lets out comes out of here too."""
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
