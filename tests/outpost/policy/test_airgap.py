"""An outpost in an air gap. It reads its policy from files, which the command line has fetched from the platform."""

import base64
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.outpost_server import OutpostServer, Trust

from gatehouse.foundation.jwt import SigningKey
from gatehouse.policy.bundles import signing


class Listener:
    """Counts connections and closes them."""

    def __init__(self) -> None:
        self.count = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def files(outpost: OutpostServer) -> tuple[Path, Path]:
    return outpost.home / "carried.jws", outpost.home / "carried.json"


@pytest.fixture(scope="module")
def cut_off(trust: Trust, listener: Listener) -> Iterator[OutpostServer]:
    outpost = OutpostServer(
        trust, OUTPOST_AIRGAP="true", PLATFORM_MANAGEMENT_URL=listener.url, CLOUD_PORTAL_URL=listener.url
    )
    bundle, keys = files(outpost)
    outpost.environment.update(OUTPOST_BUNDLE_PATH=str(bundle), OUTPOST_KEYS_PATH=str(keys))
    # The files contain the platform's current policy with the test's API key.
    assert trust.server.key
    trust.server.settled()
    process = outpost.fetch(bundle, keys)
    assert process.returncode == 0, process.stderr
    with outpost:
        yield outpost


def policy(outpost: OutpostServer) -> dict[str, Any]:
    with outpost.admin() as admin:
        policy_status: dict[str, Any] = admin.get("/admin/api/status").json()["policy"]
        return policy_status


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def resigned(outpost: OutpostServer, **claims: object) -> None:
    """Replaces the bundle by one with other content, signed by a key in the keys file."""
    bundle, keys = files(outpost)
    payload = bundle.read_text().split(".")[1]
    document = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))) | claims
    key = SigningKey.generate()
    trusted_keys = json.loads(keys.read_text())["keys"]
    keys.write_text(json.dumps({"keys": [*trusted_keys, key.published()]}))
    bundle.write_text(signing.sign(json.dumps(document).encode(), key))


def test_an_outpost_in_an_air_gap_serves_from_files_without_connections(
    cut_off: OutpostServer, listener: Listener
) -> None:
    for _ in range(3):
        assert cut_off.ask().status_code == 200
        time.sleep(0.7)
    policy_status = policy(cut_off)
    assert (policy_status["source"], policy_status["fault"], policy_status["expired"]) == ("file", None, False)
    with cut_off.admin() as admin:
        assert admin.get("/admin/api/status").json()["platform"] is None
    assert listener.count == 0


def test_a_new_bundle_file_comes_into_force_without_a_restart(
    trust: Trust, cut_off: OutpostServer, listener: Listener
) -> None:
    text = "the word is timbuktu"
    assert cut_off.ask(text).status_code == 200
    rule = {
        "name": "t", "filter_type": "keyword_block", "config": {"keywords": ["timbuktu"]}, "scope": "org",
        "priority": 5,
    }  # fmt: skip
    with trust.admin() as admin:
        created = admin.post("/api/admin/content-filters/", json=rule)
        assert created.status_code == 201, created.text
    try:
        before = policy(cut_off)["version"]
        process = cut_off.fetch(*files(cut_off))
        assert process.returncode == 0, process.stderr
        (version,) = re.findall(r"Version (\d+) for outpost", process.stdout)
        assert int(version) > before
        until(lambda: cut_off.ask(text).status_code == 403)
        assert policy(cut_off)["version"] == int(version)
    finally:
        with trust.admin() as admin:
            admin.delete(f"/api/admin/content-filters/{created.json()['id']}")
    assert listener.count == 0


def test_unusable_files_change_nothing(cut_off: OutpostServer) -> None:
    bundle, keys = files(cut_off)
    bundle_text, version = bundle.read_text(), policy(cut_off)["version"]
    for content, why in (
        (bundle_text[: len(bundle_text) // 2], "signature"),
        ("", "signature"),
        (bundle_text.replace(".", ".A", 1), "signature"),
    ):
        bundle.write_text(content)
        until(lambda why=why: why in (policy(cut_off)["fault"] or ""))  # type: ignore[misc]
        assert policy(cut_off)["version"] == version
        assert cut_off.ask().status_code == 200
        bundle.write_text(bundle_text)
        until(lambda: policy(cut_off)["fault"] is None)
    key_text = keys.read_text()
    for content in ("", "<html>", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}'):
        keys.write_text(content)
        until(lambda: "keys file" in (policy(cut_off)["fault"] or ""))
        assert cut_off.ask().status_code == 200
        keys.write_text(key_text)
        until(lambda: policy(cut_off)["fault"] is None)
    bundle.unlink()
    until(lambda: "cannot be read" in (policy(cut_off)["fault"] or ""))
    assert cut_off.ask().status_code == 200
    bundle.write_text(bundle_text)
    until(lambda: policy(cut_off)["fault"] is None)


def test_an_older_bundle_is_refused_also_after_a_restart(cut_off: OutpostServer) -> None:
    bundle, keys = files(cut_off)
    bundle_text, keys_text, version = bundle.read_text(), keys.read_text(), policy(cut_off)["version"]
    resigned(cut_off, version=version - 1)
    until(lambda: "older" in (policy(cut_off)["fault"] or ""))
    cut_off.kill()
    cut_off.start()
    assert (policy(cut_off)["version"], policy(cut_off)["source"]) == (version, "kept")
    bundle.write_text(bundle_text)
    keys.write_text(keys_text)
    until(lambda: policy(cut_off)["fault"] is None)


def test_an_expired_bundle_serves_and_its_age_is_reported(cut_off: OutpostServer) -> None:
    now = int(time.time())
    resigned(cut_off, version=policy(cut_off)["version"] + 1, issued_at=now - 900_000, expires_at=now - 300_000)
    until(lambda: bool(policy(cut_off)["expired"]))
    policy_status = policy(cut_off)
    assert (policy_status["source"], policy_status["fault"]) == ("file", None)
    assert 900_000 <= policy_status["age_seconds"] < 900_100
    assert cut_off.ask().status_code == 200
    figures = httpx2.get(cut_off.url + "/metrics").text
    (age,) = re.findall(r"^service_outpost_policy_age_seconds (\S+)$", figures, re.MULTILINE)
    assert 900_000 <= float(age) < 900_100


def test_a_failed_fetch_is_reported_in_one_line_and_does_not_change_the_files(cut_off: OutpostServer) -> None:
    before = [path.read_text() for path in files(cut_off)]
    for environment, why in (
        ({"PLATFORM_MANAGEMENT_URL": "http://127.0.0.1:9"}, "the platform cannot be reached"),
        ({"OUTPOST_ID": "00000000-0000-4000-8000-000000000001"}, "the platform refuses this outpost: 401"),
        ({"OUTPOST_ID": ""}, "OUTPOST_ID: set it"),
    ):
        process = cut_off.fetch(*files(cut_off), **environment)
        assert process.returncode != 0
        assert why in process.stderr
        assert len(process.stderr.splitlines()) == 1
    assert [path.read_text() for path in files(cut_off)] == before


@pytest.mark.parametrize("missing", ["OUTPOST_BUNDLE_PATH", "OUTPOST_KEYS_PATH"])
def test_without_the_paths_of_the_files_the_start_fails(missing: str, tmp_path: Path) -> None:
    environment = {
        "GATEHOUSE_HOME": str(tmp_path), "OUTPOST_ID": "00000000-0000-4000-8000-000000000001", "OUTPOST_AIRGAP": "true",
        "OUTPOST_BUNDLE_PATH": "bundle.jws", "OUTPOST_KEYS_PATH": "keys.json", missing: "",
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "gatehouse", "serve", "outpost", "--port", "0", "--admin-port", "0"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 2
    assert missing in process.stderr
