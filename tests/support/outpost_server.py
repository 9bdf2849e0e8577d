"""An outpost as a process, for a platform that is also a process."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

import httpx2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support import http_observer
from tests.support.launcher import Launched, launch
from tests.support.leaks import LEAK_DETECTOR
from tests.support.outposts import Authority
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

ADMIN_TOKEN = "an-admin-token-of-this-outpost"
JWT_SECRET = "a secret of this outpost's own clients"
START_SECONDS = 60


class Trust:
    """The authorities and certificates that the portal sends to the platform. Each change sends all of them."""

    def __init__(self, server: GatehouseServer) -> None:
        self.server = server
        self.authority = Authority()
        self.org_id = uuid4()
        #: the TLS context with which tests call servers
        self.verify: ssl.SSLContext | bool = True
        #: serial numbers by outpost
        self.serials: dict[UUID, list[str]] = {}

    def tell(self) -> None:
        trust = {
            "ca_certificates": [self.authority.pem],
            "organizations": [{"org_id": str(self.org_id), "tenant_id": str(DEFAULT_TENANT)}],
            "outposts": [
                {"outpost_id": str(outpost), "org_id": str(self.org_id), "serials": serials}
                for outpost, serials in self.serials.items()
            ],
        }
        with self.admin() as admin:
            answer = admin.put("/v1/platform/outpost-trust", json=trust)
            assert answer.status_code == 200, answer.text
            flag = admin.patch("/api/v1/admin/org/feature-flags/outpost_enabled", json={"enabled": True})
            assert flag.status_code == 200, flag.text

    def admin(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.server.key}"}
        # The key may be so new that not every worker knows it.
        self.server.settled()
        return httpx2.Client(base_url=self.server.url, headers=headers, timeout=60, verify=self.verify)


class OutpostServer:
    """`with OutpostServer(trust) as outpost:` starts it; `environment` replaces settings."""

    def __init__(self, trust: Trust, **environment: str) -> None:
        self.trust = trust
        self.id = uuid4()
        self._folder = tempfile.TemporaryDirectory(prefix="gho")
        self.home = Path(self._folder.name)
        self.certificate, self.key = self.home / "outpost.pem", self.home / "outpost.key"
        self.url = self.admin_url = ""
        self.environment = environment
        #: the whole environment of the process
        self.started_with: dict[str, str] = {}
        self.process: Launched | None = None
        self.enrol()

    @property
    def log(self) -> str:
        return (self.home / "server.log").read_text()

    def enrol(self, *, days: float = 5, tell: bool = True) -> str:
        """Write a new certificate into the files that the process reads. Return its serial number."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.trust.authority.issue(key, days=days)
        for path, content in (
            (self.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())),
            (self.certificate, certificate.public_bytes(Encoding.PEM)),
        ):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            new.replace(path)
        serial = f"{certificate.serial_number:x}"
        if tell:
            self.trust.serials.setdefault(self.id, []).append(serial)
            self.trust.tell()
        return serial

    def start(self) -> None:
        """Start the process and return when both ports are open. After `kill` the ports are the same as before."""
        ports = [url.rpartition(":")[2] or "0" for url in (self.url, self.admin_url)]
        environment = {
            "PATH": os.environ["PATH"],
            "INGRESS": os.environ.get("INGRESS", ""),
            "GATEHOUSE_HOME": str(self.home),
            "OUTPOST_ID": str(self.id),
            "PLATFORM_MANAGEMENT_URL": self.trust.server.url,
            "TLS_CERT_PATH": str(self.certificate),
            "TLS_KEY_PATH": str(self.key),
            "OUTPOST_ADMIN_TOKEN": ADMIN_TOKEN,
            "OUTPOST_JWT_SECRET": JWT_SECRET,
            "RATE_LIMIT_PROXY_PER_MINUTE": "1000000",
            "RATE_LIMIT_ADMIN_PER_MINUTE": "1000000",
            **self.environment,
        }
        self.started_with = environment
        arguments = ["serve", "outpost", "--port", ports[0], "--admin-port", ports[1]]
        path = self.home / "server.log"
        begins = path.stat().st_size if path.exists() else 0
        with path.open("ab") as log:
            self.process = launch(arguments, env=environment, cwd=self.home, log=log)
        deadline = time.monotonic() + START_SECONDS
        while not (match := re.search(r"serves on (\S+), its administration on (\S+)", self.log[begins:])):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)
        self.url, self.admin_url = match[1], match[2]
        for url in (self.url, self.admin_url):
            http_observer.register(url)

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until it answers requests."""
        deadline = time.monotonic() + seconds
        with self.client() as client:
            while client.get("/api/health/ready").status_code != 200:
                assert time.monotonic() < deadline, self.log
                time.sleep(0.02)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def fetch(self, bundle: Path, keys: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Fetch a bundle like an operator of an air-gapped outpost, on a machine that reaches the platform."""
        process_environment = {
            "GATEHOUSE_HOME": str(self.home / "elsewhere"), "OUTPOST_ID": str(self.id),
            "PLATFORM_MANAGEMENT_URL": self.trust.server.url, "TLS_CERT_PATH": str(self.certificate),
            "TLS_KEY_PATH": str(self.key), **environment,
        }  # fmt: skip
        command = [sys.executable, "-P", "-m", "gatehouse", "outpost", "bundle"]
        command += ["--out", str(bundle), "--keys", str(keys)]
        return subprocess.run(command, env=process_environment, capture_output=True, text=True, timeout=60, check=False)

    def client(self, key: str | None = None) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {key or self.trust.server.key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, verify=self.trust.verify)

    def admin(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        return httpx2.Client(base_url=self.admin_url, headers=headers, timeout=60, verify=self.trust.verify)

    def ask(self, text: str = "Hello", model: str = "sandbox/echo", key: str | None = None) -> httpx2.Response:
        with self.client(key) as client:
            return client.post("/v1/chat/completions", content=json.dumps(chat_body(text, model)))

    def __enter__(self) -> Self:
        self.start()
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        for url in (self.url, self.admin_url):
            http_observer.unregister(url)
        if self.process is not None:
            self.kill(signal.SIGTERM)
        LEAK_DETECTOR.add_text("an outpost's log", self.log.encode())
        self._folder.cleanup()


def chat_body(text: str, model: str = "sandbox/echo", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def stored(trust: Trust, outpost: OutpostServer) -> list[str]:
    """Return the request ids of the outpost's records, in the order of the chain."""
    rows = trust.server.sql(
        "SELECT request_id FROM audit_events WHERE action = 'gateway.request' AND details->>'outpost_id' = %s"
        " ORDER BY sequence",
        [str(outpost.id)],
    )
    return [request_id for (request_id,) in rows]


def verified(trust: Trust) -> str:
    command = [sys.executable, "-P", "-m", "gatehouse", "audit", "verify"]
    done = subprocess.run(command, env=trust.server.env, cwd=trust.server.home, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()
