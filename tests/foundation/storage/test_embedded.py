"""Start, stop and crash of the embedded server, with real servers."""

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from gatehouse.foundation.storage import embedded

START = (
    "import sys, pathlib; from gatehouse.foundation.storage import embedded; embedded.start(pathlib.Path(sys.argv[1]))"
)
STOP_ALWAYS = """
import os, pathlib, signal, sys
from gatehouse.foundation.storage import embedded
home = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while True:
    number = embedded.pid(home)
    if number is not None:
        try:
            os.kill(number, signal.SIGQUIT)
        except ProcessLookupError:
            pass
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ge", dir="/tmp", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
        embedded.stop(Path(directory))


def test_several_first_starts_at_once_and_one_during_a_stop_all_find_a_server(home: Path) -> None:
    command = [sys.executable, "-P", "-c", START, str(home)]
    starts = [subprocess.Popen(command) for _ in range(3)]
    assert [start.wait(60) for start in starts] == [0, 0, 0]
    stopping = subprocess.Popen([*command[:3], START.replace("start(", "stop("), str(home)])
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    assert stopping.wait(60) == 0
    # Whether the start or the stop was first, the next start succeeds.
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    with psycopg.connect(f"postgresql://postgres:@/postgres?host={home / 'postgres'}") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_start_ends_if_the_server_is_stopped_during_each_start(home: Path) -> None:
    embedded.start(home)
    embedded.stop(home)
    # This process stops the server each time the server has written its process id.
    stopping = subprocess.Popen([sys.executable, "-P", "-c", STOP_ALWAYS, str(home)], stdout=subprocess.PIPE)
    try:
        assert stopping.stdout is not None
        stopping.stdout.readline()
        with pytest.raises(embedded.NotStarted, match="did not start"):
            embedded.start(home)
    finally:
        stopping.kill()
        stopping.wait()
    # The failed starts hold no lock, and the server can be started.
    with psycopg.connect(embedded.start(home)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_start_does_not_wait_for_the_start_of_another_home(home: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ge", dir="/tmp", ignore_cleanup_errors=True) as directory:
        other_home = Path(directory)
        with (other_home / "postgres.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = subprocess.Popen([sys.executable, "-P", "-c", START, str(other_home)])
            try:
                embedded.start(home)
                assert waiting.poll() is None
            finally:
                waiting.kill()
                waiting.wait()


def test_the_data_directory_may_be_a_link_to_another_disk(home: Path) -> None:
    embedded.start(home)
    embedded.stop(home)
    with tempfile.TemporaryDirectory(prefix="ge", dir="/tmp") as disk:
        Path(disk).chmod(0o755)
        (home / "postgres").rename(Path(disk) / "data")
        (home / "postgres").symlink_to(Path(disk) / "data")
        with psycopg.connect(embedded.start(home)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        embedded.stop(home)
        assert embedded.pid(home) is None


def test_data_of_another_version_of_postgresql_is_refused(home: Path) -> None:
    (home / "postgres").mkdir()
    (home / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(embedded.NotStarted, match="made by PostgreSQL 15, not 18"):
        embedded.start(home)


def test_a_stop_ends_no_stranger_that_has_a_dead_servers_number(home: Path) -> None:
    (home / "postgres").mkdir()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        for number in (stranger.pid, os.getpid()):
            (home / "postgres" / "postmaster.pid").write_text(f"{number}\n")
            embedded.stop(home)
        assert stranger.poll() is None
        stranger.kill()
    (home / "postgres" / "postmaster.pid").write_text("")
    embedded.stop(home)


def test_a_server_that_was_stopped_or_killed_starts_again_in_the_same_process(home: Path) -> None:
    for end in (embedded.stop, _kill):
        url = embedded.start(home)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        end(home)
    with psycopg.connect(embedded.start(home)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def _kill(home: Path) -> None:
    """End the server like a crash of the machine: it writes nothing more, and the file `postmaster.pid` remains."""
    postmaster = psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split("\n")[0]))
    family = [postmaster, *postmaster.children()]
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=10)
