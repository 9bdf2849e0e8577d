"""`gatehouse doctor` as its user runs it: in a process, over a broken installation."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.platform import RunningPlatform


def doctor(home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "gatehouse"), "doctor"]
    environment = {"PATH": os.environ["PATH"], "GATEHOUSE_HOME": str(home), **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_sound_installation_has_no_failure(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert "master key: opens what is sealed" in done.stdout


def test_a_wrong_master_key_is_found_and_the_mend_told(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home, GATEHOUSE_MASTER_KEY="A" * 43 + "=")
    assert done.returncode == 1
    assert "FAIL  master key" in done.stdout
    assert "mend: set GATEHOUSE_MASTER_KEY" in done.stdout


def test_a_setting_that_makes_no_sense_is_named(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home, JOURNAL_SYNC="sometimes")
    assert done.returncode == 1
    assert "JOURNAL_SYNC" in done.stdout


def test_a_dead_database_is_said_in_one_line(tmp_path: Path) -> None:
    url = "postgresql://nobody:hunter2@127.0.0.1:9/none"
    done = doctor(tmp_path, DATABASE_URL=url, GATEHOUSE_MASTER_KEY="A" * 43 + "=")
    assert done.returncode == 1
    assert "DATABASE_URL" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_a_redis_that_is_away_is_a_warning(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home, REDIS_URL="redis://127.0.0.1:9")
    assert done.returncode == 0
    assert "warn  redis" in done.stdout
