"""`gatehouse serve platform` as a process: failures of the start, a second start, and the end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import psutil
import pytest
from tests.support.leaks import LEAK_DETECTOR
from tests.support.server import UNLIMITED

from gatehouse.foundation.storage import embedded
from gatehouse.platform.worker.child_processes import Child
from gatehouse.platform.worker.supervisor import Supervisor

OTHER_KEY = b64encode(b"k" * 32).decode()
START_SECONDS = 150.0


class Home:
    """One GATEHOUSE_HOME. Each `start` is another process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
        self.env["GATEHOUSE_HOME"] = str(home)
        self.started: list[psutil.Process] = []
        self.log = home.parent / f"{home.name}.log"

    def command(self, *words: str, stdin: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-P", "-m", "gatehouse", *words],
            env=self.env | env, cwd="/", input=stdin, capture_output=True, text=True, timeout=START_SECONDS,
            check=False,
        )  # fmt: skip

    def begin(self, *words: str, **env: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-m", "gatehouse", "serve", "platform", *(words or ("--port", "0"))]
        self.log.unlink(missing_ok=True)
        with self.log.open("wb") as log:
            process = subprocess.Popen(command, env=self.env | env, stdout=log, stderr=log, cwd="/")
        self.started.append(psutil.Process(process.pid))
        return process

    def start(self, *words: str, **env: str) -> "tuple[subprocess.Popen[bytes], str]":
        """Wait for the start message and return the URL."""
        process = self.begin(*words, **env)
        until(lambda: "Try it" in self.log_text() or process.poll() is not None)
        assert process.poll() is None, self.log_text()
        return process, self.log_text().partition("serves on ")[2].split()[0]

    def log_text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def password(self) -> str:
        """Return the first admin's password from its file."""
        password = (self.home / "first-admin").read_text().splitlines()[1]
        LEAK_DETECTOR.add_secret(password, "the first admin's password")
        return password

    def signs_in(self, url: str, password: str) -> bool:
        body = {"email": "admin@gatehouse.local", "password": password}
        return httpx2.post(f"{url}/api/auth/login", json=body, timeout=60).status_code == 200

    def close(self) -> None:
        for process in self.started:
            for member in [*children_of(process), process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
        embedded.stop(self.home)
        if self.log.exists():
            LEAK_DETECTOR.add_text("a server's log", self.log.read_bytes())
            self.log.unlink()


def children_of(process: psutil.Process) -> list[psutil.Process]:
    """Return all descendants of the process, or none if it has ended."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def gateways_of(process: psutil.Process) -> set[int]:
    """Return the process ids of the supervisor's gateways. Children that end meanwhile are left out."""
    gateways = set()
    for child in children_of(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "gateway" in " ".join(child.cmdline()):
                gateways.add(child.pid)
    return gateways


def until(condition: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stop(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> int:
    """Send SIGTERM and return the exit status."""
    process.send_signal(signal.SIGTERM)
    return process.wait(40)


@pytest.fixture
def home() -> Iterator[Home]:
    # The path must be short, because the path of a Unix socket is limited to about 100 characters.
    with tempfile.TemporaryDirectory(prefix="gs", dir="/tmp", ignore_cleanup_errors=True) as directory:
        running = Home(Path(directory) / "home")
        yield running
        running.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Home]:
    """A migrated GATEHOUSE_HOME, for tests that leave it unchanged."""
    with tempfile.TemporaryDirectory(prefix="gs", dir="/tmp", ignore_cleanup_errors=True) as directory:
        running = Home(Path(directory) / "home")
        running.env["GATEHOUSE_ADMIN_PASSWORD"] = "the first admin's password"
        assert running.command("migrate").returncode == 0
        yield running
        running.close()


BAD = {
    "LOG_LEVEL": "loud",
    "REDIS_URL": "localhost:6379",
    "TRUSTED_PROXIES": "10.0.0.0/33",
    "EGRESS_ALLOWLIST": "everything",
    "METRICS_ALLOWED_CIDRS": "10.0.0.1/8",
    "TLS_CERT_PATH": "/nowhere/cert.pem",
    "TLS_KEY_PATH": "/nowhere/key.pem",
    "GATEHOUSE_MASTER_KEY": "short",
}


@pytest.mark.parametrize(
    ("words", "more_faults"),
    [
        (
            ("serve", "platform"),
            {"RATE_LIMIT_TIERS": "[]", "MFA_REQUIRED": "maybe", "OTEL_EXPORTER_OTLP_HEADERS": "a b=c"},
        ),
        (("serve", "portal"), {"PLATFORM_URL": "http://platform.example.com"}),
        (("serve", "outpost"), {"OUTPOST_AIRGAP": "true", "SIEM_DIRECT_TYPE": "hec"}),
        (("worker",), {"DATABASE_URL": "not a URL", "RATE_LIMIT_TIERS": "[]"}),
    ],
)
def test_all_bad_settings_are_reported_at_once_and_nothing_is_started(
    home: Home, words: tuple[str, ...], more_faults: dict[str, str]
) -> None:
    faulty = BAD | more_faults
    if words == ("worker",):
        # `gatehouse worker` has no port, so the TLS settings are not read.
        faulty = {name: value for name, value in faulty.items() if not name.startswith("TLS_")}
    done = home.command(*words, **faulty)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    reported_as = {
        "PLATFORM_URL": "PLATFORM_CLIENT_ID",
        "OUTPOST_AIRGAP": "OUTPOST_BUNDLE_PATH",
        "SIEM_DIRECT_TYPE": "SIEM_",
    }
    lines = done.stderr.splitlines()
    for name in faulty:
        if name == "TLS_KEY_PATH" or (words[-1] == "outpost" and name.startswith("TLS_")):
            # Both TLS paths are reported in one line. An outpost has its own TLS settings.
            continue
        assert sum(reported_as.get(name, name) in line for line in lines) == 1, (name, done.stderr)
    assert not home.home.exists()


def test_the_first_admins_password_is_checked_before_the_database_is_started(home: Home) -> None:
    done = home.command("serve", "platform", GATEHOUSE_ADMIN_PASSWORD="password123")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("gatehouse: GATEHOUSE_ADMIN_PASSWORD: ")
    assert "Traceback" not in done.stderr
    assert not home.home.exists()


def test_a_first_start_on_a_used_port_starts_no_database(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = home.command("serve", "platform", "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"gatehouse: cannot listen on 127.0.0.1:{port}: Address already in use; choose --port\n"
    assert not (home.home / "postgres").exists()
    process, url = home.start("--port", port)
    assert url == f"http://127.0.0.1:{port}"
    assert home.signs_in(url, home.password())
    assert stop(process) == 0


def test_the_file_of_the_first_admins_password_is_deleted_when_the_password_is_used(home: Home) -> None:
    file = home.home / "first-admin"
    process, _ = home.start()
    password = home.password()
    assert file.stat().st_mode & 0o777 == 0o600
    # The password is not printed if the output is not a terminal, because the output may be stored.
    secrets = "the password, and a link to set your own, are"
    assert f"First admin: admin@gatehouse.local; {secrets} in {file} until its first use" in home.log_text()
    assert password not in home.log_text()
    assert "token=" not in home.log_text()
    assert (home.home / "trial.key").read_text().strip() not in home.log_text()
    assert stop(process) == 0
    process, url = home.start()
    assert "First admin: " in home.log_text()
    assert home.signs_in(url, password)
    until(lambda: not file.exists(), 20)
    assert home.signs_in(url, password)
    assert stop(process) == 0
    process, _ = home.start()
    assert "First admin" not in home.log_text()
    assert stop(process) == 0


def test_the_first_admins_password_is_not_announced_after_a_reset(home: Home) -> None:
    assert "the password is in" in home.command("migrate").stdout
    assert "the password is in" in home.command("migrate").stdout
    reset = ["users", "reset", "admin@gatehouse.local", "--password-stdin"]
    assert home.command(*reset, stdin="another password").returncode == 0
    assert "the password is in" not in home.command("migrate").stdout
    assert not (home.home / "first-admin").exists()


@pytest.fixture(scope="class")
def server(shared: Home) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Start a server in `shared`, and yield its supervisor and URL. One setting is misspelt on purpose, for
    `test_a_misspelt_setting_is_reported`."""
    process, url = shared.start(**UNLIMITED, RATE_LIMIT_REQUEST_PER_MINUTE="5")
    yield process, url
    assert stop(process) == 0
    assert embedded.pid(shared.home) is None


class TestSharedServer:
    """Tests that leave a server unchanged share one start."""

    @pytest.mark.usefixtures("server")
    def test_a_misspelt_setting_is_reported(self, shared: Home) -> None:
        assert '"meant": "RATE_LIMIT_REQUESTS_PER_MINUTE"' in shared.log_text()
        examined = shared.command("doctor", RATE_LIMIT_REQUEST_PER_MINUTE="5")
        assert "warn  settings: RATE_LIMIT_REQUEST_PER_MINUTE" in examined.stdout

    @pytest.mark.usefixtures("server")
    def test_the_printed_curl_line_works_when_pasted(self, shared: Home) -> None:
        line = shared.log_text().partition("Try it:\n")[2].splitlines()[0]
        done = subprocess.run(["/bin/sh", "-c", line.replace("curl ", "curl -s ")], capture_output=True, check=True)
        assert b"Hello, Gatehouse" in done.stdout

    def test_a_second_start_is_refused_and_does_not_affect_the_first(
        self, shared: Home, server: tuple["subprocess.Popen[bytes]", str]
    ) -> None:
        process, url = server
        done = shared.command("serve", "platform", "--port", "0")
        assert done.returncode == 1
        assert done.stderr == (
            f"gatehouse: {shared.home} is in use by process {process.pid} at {url};"
            " stop that process, or set another GATEHOUSE_HOME\n"
        )
        assert process.poll() is None
        until(lambda: httpx2.get(f"{url}/api/health/ready").status_code == 200, 20)
        # A command uses the running server's database, and does not stop it.
        assert shared.command("users", "list").returncode == 0
        until(lambda: httpx2.get(f"{url}/api/health/ready").status_code == 200, 20)
        assert embedded.pid(shared.home) is not None
        # A backup is possible while the server runs, and does not replace an existing file.
        saved = shared.command("backup", str(shared.home / "saved.tar"))
        assert (saved.returncode, saved.stderr) == (0, "")
        again = shared.command("backup", str(shared.home / "saved.tar"))
        assert (again.returncode, "is there already; --force replaces it" in again.stderr) == (1, True)
        refused = shared.command("restore", "--force", str(shared.home / "saved.tar"))
        assert refused.returncode == 1
        assert f"in use by process {process.pid}" in refused.stderr

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
    def test_a_database_that_dies_is_restarted_while_the_gateway_continues(
        self, shared: Home, server: tuple["subprocess.Popen[bytes]", str], number: int
    ) -> None:
        process, url = server
        key = (shared.home / "trial.key").read_text().strip()
        gateways = gateways_of(psutil.Process(process.pid))
        # The command that starts the server after an earlier death can still run.
        until(lambda: is_settled(shared.log_text()), 60)
        first, deaths = embedded.pid(shared.home), shared.log_text().count("supervisor.database_died")
        assert first is not None
        assert gateways
        os.kill(first, number)
        body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hi"}]}
        with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
            deadline = time.monotonic() + 60
            while True:
                assert client.post("/v1/chat/completions", json=body).status_code == 200
                if embedded.pid(shared.home) not in {None, first}:
                    answer = client.get("/api/admin/system/health")
                    if answer.status_code == 200 and answer.json()["components"]["database"]["status"] == "healthy":
                        break
                assert time.monotonic() < deadline, shared.log_text()
        until(lambda: httpx2.get(f"{url}/api/health/ready").status_code == 200, 20)
        assert shared.log_text().count("supervisor.database_died") > deaths
        assert gateways <= gateways_of(psutil.Process(process.pid))


def is_settled(log: str) -> bool:
    """Return whether each start of the database after a death has ended."""
    ended = log.count("supervisor.database_started") + log.count("supervisor.database_not_started")
    return log.count("supervisor.database_died") == ended


def test_a_command_stops_the_database_that_it_started(shared: Home) -> None:
    assert embedded.pid(shared.home) is None
    assert shared.command("users", "list").returncode == 0
    assert embedded.pid(shared.home) is None


def test_a_killed_supervisor_releases_the_home_at_once(shared: Home) -> None:
    process, _ = shared.start()
    process.kill()
    process.wait(10)
    again, url = shared.start()
    until(lambda: httpx2.get(f"{url}/api/health/ready").status_code == 200, 20)
    assert stop(again) == 0
    assert embedded.pid(shared.home) is None


@pytest.mark.parametrize(
    ("created_file", "stop_signal"),
    [
        ("postgres.new", signal.SIGINT),
        ("postgres.new", signal.SIGKILL),
        ("postgres/postmaster.pid", signal.SIGTERM),
        ("first-admin", signal.SIGKILL),
    ],
)
def test_a_first_start_that_is_interrupted_can_be_repeated(
    home: Home, stop_signal: signal.Signals, created_file: str
) -> None:
    process = home.begin()
    until((home.home / created_file).exists)
    family = children_of(psutil.Process(process.pid))
    process.send_signal(stop_signal)
    status = process.wait(40)
    if stop_signal != signal.SIGKILL:
        assert status == 0, home.log_text()
        assert "Traceback" not in home.log_text()
        assert not [item for item in psutil.wait_procs(family, timeout=10)[1] if item.name() != "postgres"]
        assert embedded.pid(home.home) is None
    process, url = home.start()
    assert home.signs_in(url, home.password())
    assert stop(process) == 0


def test_a_wrong_master_key_is_refused(shared: Home) -> None:
    done = shared.command("serve", "platform", "--port", "0", GATEHOUSE_MASTER_KEY=OTHER_KEY)
    assert done.returncode == 2
    assert "GATEHOUSE_MASTER_KEY: it does not open what is sealed in the database" in done.stderr
    assert "Traceback" not in done.stderr
    # The error is the last line, and everything that was started is stopped.
    assert done.stderr.splitlines()[-1].startswith("gatehouse: ")
    assert embedded.pid(shared.home) is None


def test_a_wrong_master_key_is_refused_with_an_external_database(shared: Home) -> None:
    other = Home(shared.home.parent / "other")
    url = embedded.start(shared.home)
    try:
        for words in (("serve", "platform", "--port", "0"), ("worker",)):
            done = other.command(*words, DATABASE_URL=url, GATEHOUSE_MASTER_KEY=OTHER_KEY)
            assert done.returncode == 2, done.stderr
            assert "GATEHOUSE_MASTER_KEY: it does not open" in done.stderr
    finally:
        embedded.stop(shared.home)


def test_a_worker_logs_that_it_runs(shared: Home) -> None:
    url = embedded.start(shared.home)
    own = {"DATABASE_URL": url, "GATEHOUSE_MASTER_KEY": (shared.home / "master.key").read_text()}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gatehouse", "worker"],
            env=shared.env | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert any("worker.started" in line for line in process.stdout)
            assert stop(process) == 0
        finally:
            process.kill()
            process.communicate()
    finally:
        embedded.stop(shared.home)


def test_a_slow_start_is_not_aborted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gatehouse.platform.worker.supervisor._SLOW_START_LOG_SECONDS", 0.1)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    ready, ready_end = os.pipe()
    slow = ["/bin/sh", "-c", f"sleep 0.6; printf 1 >/dev/fd/{ready_end}; sleep 60"]
    child = Child(lambda: subprocess.Popen(slow, pass_fds=[ready_end]), tmp_path)
    unneeded = Child(lambda: subprocess.Popen(["/bin/true"]), tmp_path, is_needed=lambda: False)
    try:
        child.start()
        Supervisor(host="127.0.0.1", port=0, workers=1)._wait_ready([child], ready, unneeded)
    finally:
        child.signal(signal.SIGKILL)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ready)
        os.close(ready_end)
