"""Starts the portal as a process of its own, next to a platform process. Both use one PostgreSQL, in which the
portal has its own schema."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

import httpx2
from tests.support import http_observer
from tests.support.launcher import Launched, launch
from tests.support.leaks import LEAK_DETECTOR
from tests.support.portal import ADMIN_KEY, MASTER_KEY
from tests.support.server import GatehouseServer

START_SECONDS = 60


class PortalServer:
    """A portal process. Usage: `with PortalServer(platform, port) as portal:`. If the platform must reach the portal,
    start the platform with PORTAL_PUBLIC_URL set to `url_of(port)`."""

    def __init__(self, platform: GatehouseServer, port: int) -> None:
        self.platform = platform
        self.url = url_of(port)
        self._port = port
        self._folder = tempfile.TemporaryDirectory(prefix="ghp")
        self.home = Path(self._folder.name)
        self._process: Launched | None = None
        client = self._client()
        self.env = {
            "PATH": os.environ["PATH"],
            "GATEHOUSE_HOME": str(self.home),
            "GATEHOUSE_MASTER_KEY": MASTER_KEY,
            "PORTAL_DATABASE_URL": platform.database_url,
            "PORTAL_ADMIN_API_KEY": ADMIN_KEY,
            "PORTAL_PUBLIC_URL": self.url,
            "PLATFORM_URL": platform.url,
            "PLATFORM_CLIENT_ID": client["client_id"],
            "PLATFORM_CLIENT_SECRET": client["client_secret"],
        }
        LEAK_DETECTOR.add_secret(ADMIN_KEY, "the portal's admin key")
        self.command("migrate", "portal")
        self.admin = httpx2.Client(base_url=self.url, headers={"X-API-Key": ADMIN_KEY}, timeout=60)

    def _client(self) -> dict[str, str]:
        key = self.platform.key
        self.platform.settled()
        response = httpx2.post(
            f"{self.platform.url}/api/admin/oauth-clients/",
            json={"name": "the portal", "tenant_id": None, "scopes": ["admin:write"]},
            headers={"X-API-Key": key},
        )
        assert response.status_code == 201, response.text
        body: dict[str, str] = response.json()
        return body

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gatehouse", *arguments],
            env=self.env, cwd=self.home, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        path = self.home / "server.log"
        begins = path.stat().st_size if path.exists() else 0
        with path.open("ab") as log:
            arguments = ["serve", "portal", "--port", str(self._port)]
            self._process = launch(arguments, env=self.env, cwd=self.home, log=log)
        deadline = time.monotonic() + START_SECONDS
        while not re.search(r"serves on (\S+)", text := path.read_text()[begins:]):
            assert self._process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.02)
        http_observer.register(self.url)

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        """Send a signal to the process, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(signal_number)
            self._process.wait(60)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        http_observer.unregister(self.url)
        self.admin.close()
        self.kill(signal.SIGTERM)
        LEAK_DETECTOR.add_text("a portal's log", (self.home / "server.log").read_bytes())
        self._folder.cleanup()

    def sql(self, query: str, parameters: Any = None) -> list[Any]:
        """Run a statement as the owner. Tables need their schema, `portal`."""
        return self.platform.sql(query, parameters)

    def new_org(self, **body: Any) -> tuple[UUID, str]:
        """Create an organization that exists on the platform too. Return it with its owner's API key."""
        slug = f"o-{uuid4().hex[:12]}"
        answer = self.admin.post("/v1/orgs", json={"name": slug, "slug": slug, "plan_tier": "enterprise", **body})
        assert answer.status_code == 201, answer.text
        org_id = UUID(answer.json()["org"]["id"])
        deadline = time.monotonic() + START_SECONDS
        while self.sql(
            "SELECT 1 FROM portal.organizations WHERE id = %s AND provisioning_status <> 'active'", [org_id]
        ):
            assert time.monotonic() < deadline, self.sql("SELECT * FROM portal.jobs WHERE org_id = %s", [org_id])
            time.sleep(0.02)
        return org_id, answer.json()["api_key"]

    def register(self, org_id: UUID) -> dict[str, Any]:
        body = {"outpost_name": f"o-{uuid4().hex[:8]}", "region": "eu-central-1", "deployment_env": "test"}
        answer = self.admin.post(f"/v1/orgs/{org_id}/outposts", json=body)
        assert answer.status_code == 201, answer.text
        result: dict[str, Any] = answer.json()
        return result


def url_of(port: int) -> str:
    return f"http://127.0.0.1:{port}"
