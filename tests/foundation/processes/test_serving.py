"""Errors of a process that cannot use its home folder."""

import os
import re
from pathlib import Path

import pytest

from gatehouse.foundation.processes.serving import CannotStart, HomeLock
from gatehouse.foundation.settings import BadSettings


def test_a_home_in_use_names_the_process_and_its_address(tmp_path: Path) -> None:
    with HomeLock(tmp_path) as lock:
        lock.describe("http://127.0.0.1:8000")
        with pytest.raises(CannotStart, match=f"in use by process {os.getpid()} at http://127.0.0.1:8000;"):
            HomeLock(tmp_path)
    HomeLock(tmp_path).release()


def test_a_lock_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    # The test uses a folder, to which no user can write. Root, as which tests may run, can write to any user's file.
    (tmp_path / "serve.lock").mkdir()
    with pytest.raises(BadSettings, match=re.escape(f"GATEHOUSE_HOME: {tmp_path}/serve.lock cannot be written to")):
        HomeLock(tmp_path)


def test_a_second_release_of_a_lock_does_not_close_another_file(tmp_path: Path) -> None:
    with HomeLock(tmp_path) as lock:
        lock.release()
        descriptor = os.open(tmp_path, os.O_RDONLY)
    os.fstat(descriptor)
    os.close(descriptor)
