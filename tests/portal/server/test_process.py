"""`gatehouse serve portal` as a process: its first start, its second start, and its end."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.support.leaks import LEAK_DETECTOR

from gatehouse.foundation.settings import BadSettings
from gatehouse.foundation.storage import embedded
from gatehouse.portal.settings import PortalSettings


class PortalProcess:
    """A portal with one home. Each `start` starts a new process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
        self.env["GATEHOUSE_HOME"] = str(home)
        self.log = home / "portal.log"
        self.output = self.url = ""

    def start(self) -> None:
        self.output, begins = "", self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-P", "-m", "gatehouse", "serve", "portal", "--port", "0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, cwd=self.home)
        deadline = time.monotonic() + 60
        while not (match := re.search(r"portal serves on (http\S+)", self.output)):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)
            self.output = self.log.read_bytes()[begins:].decode()
        self.url = match[1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "gatehouse", *words],
            env=self.env, cwd=self.home, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip


@pytest.fixture
def portal() -> Iterator[PortalProcess]:
    # The path must be short, because the name of a socket may have at most 100 characters.
    with tempfile.TemporaryDirectory(prefix="gp", dir="/tmp", ignore_cleanup_errors=True) as directory:
        running = PortalProcess(Path(directory))
        yield running
        running.process.kill()
        embedded.stop(Path(directory) / "portal")


def test_a_first_start_creates_the_tables_and_prints_the_admin_key_once(portal: PortalProcess) -> None:
    portal.start()
    time.sleep(0.2)
    (key,) = re.findall(r"X-API-Key\): (adm_\w+)", portal.log.read_text())
    client = httpx2.Client(base_url=portal.url, headers={"X-API-Key": key})
    deadline = time.monotonic() + 60
    while client.get("/api/health/ready").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    created = client.post("/v1/orgs", json={"name": "A", "slug": "a", "plan_tier": "starter"})
    assert created.status_code == 201, created.text
    org_id = created.json()["org"]["id"]
    token = client.post(f"/v1/orgs/{org_id}/tokens", json={}).json()["token"]
    checked = portal.command("migrate", "portal", "--check")
    assert (checked.returncode, checked.stdout) == (0, "The schema is this version's.\n"), checked.stderr
    rotated = portal.command("keys", "rotate", "portal")
    assert rotated.returncode == 0, rotated.stderr
    assert portal.stop() == 0

    portal.start()
    assert "adm_" not in portal.output.partition("serves on")[2]
    second_client = httpx2.Client(base_url=portal.url)
    answer = second_client.get(f"/v1/orgs/{org_id}", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["slug"]) == (200, "a")
    assert second_client.delete(f"/v1/orgs/{org_id}", headers={"X-API-Key": key}).status_code == 204
    for place in portal.home.rglob("*"):
        if place.is_file() and place.name != "portal.log" and "postgres" not in place.parts:
            assert key.encode() not in place.read_bytes(), place
    assert portal.stop() == 0
    LEAK_DETECTOR.add_text("the portal's log", portal.log.read_text().replace(key, ""))


def test_a_second_process_of_a_home_is_refused_and_leaves_the_first_its_database(portal: PortalProcess) -> None:
    portal.start()
    process = portal.command("serve", "portal", "--port", "0")
    assert process.returncode == 1
    assert f"in use by process {portal.process.pid} at {portal.url}; stop that process" in process.stderr
    assert httpx2.get(f"{portal.url}/.well-known/jwks.json").status_code == 200
    assert portal.stop() == 0
    assert not (portal.home / "portal" / "postgres" / "postmaster.pid").exists()
    # With another master key the portal does not serve, and stops its database.
    portal.env["GATEHOUSE_MASTER_KEY"] = b64encode(b"k" * 32).decode()
    process = portal.command("serve", "portal", "--port", "0")
    assert process.returncode == 2
    assert "GATEHOUSE_MASTER_KEY: it does not open what is sealed in the database" in process.stderr
    assert not (portal.home / "portal" / "postgres" / "postmaster.pid").exists()


def test_an_impossible_home_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    portal = PortalProcess(tmp_path)
    portal.env["GATEHOUSE_HOME"] = str(tmp_path / "file")
    for words in (("serve", "portal"), ("migrate", "portal")):
        process = portal.command(*words)
        assert process.returncode != 0
        assert "GATEHOUSE_HOME: " in process.stderr
        assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"PORTAL_ADMIN_API_KEY": "too short"}, "PORTAL_ADMIN_API_KEY: "),
        ({"PORTAL_DATABASE_URL": "postgresql://x"}, "PORTAL_ADMIN_API_KEY: needed"),
        ({"PLATFORM_URL": "http://platform.example.com"}, "PLATFORM_CLIENT_ID, "),
        ({"PLATFORM_URL": "platform"}, "PLATFORM_URL: "),
        ({"PORTAL_PUBLIC_URL": "https://portal.example.com/below"}, "PORTAL_PUBLIC_URL: "),
    ],
)
def test_a_bad_setting_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings) as refused:
        PortalSettings.from_environment(environment)
    assert str(refused.value).startswith(message)
    assert "too short" not in str(refused.value)


def test_the_settings_contain_only_digests_of_admin_keys() -> None:
    first, second = "a first key, long enough", "a second key, long enough"
    settings = PortalSettings.from_environment({"PORTAL_ADMIN_API_KEY": f"{first}, {second}".replace("key,", "key")})
    assert len(settings.portal_admin_api_key) == 2
    assert "long enough" not in repr(settings)


def test_the_documentation_lists_exactly_the_settings() -> None:
    page = (Path(__file__).parents[3] / "docs/portal.md").read_text("utf-8")
    variables = re.findall(r"^\| `([A-Z_]+)` \| .+ \| .+ \|$", page, re.MULTILINE)
    assert sorted(name.lower() for name in variables) == sorted(PortalSettings.model_fields)
