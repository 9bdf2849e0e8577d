"""Gatehouse with authentication, rate limit, audit events and usage records, embedded PostgreSQL and one worker. A
second variant also inspects every request and answer, which no other gateway does.

The roles of processes are: `gateway`, the worker, which answers requests; `recording`, the keeper, which drains the
journal, and PostgreSQL; and `supervision`, which starts and watches the other processes.
"""

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from rig import postgres, processes
from rig.gateways.base import Gateway, Site
from rig.load import NoAnswer, Route, Target

EMAIL = "bench@example.com"


class Gatehouse(Gateway):
    name = "gatehouse"
    inspects = False
    apart = frozenset({"recording"})
    #: the settings for the ingress and the outbound HTTP client
    edges = "lean", "lean"
    workers = 1
    #: settings in addition to those of all variants
    settings: Mapping[str, str] = {}

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.home = self.work / f"home-{self.port}"
        self.key = ""
        self._password = secrets.token_urlsafe(24)
        self._database: Any = None

    def command(self) -> list[str]:
        assert self.site.gatehouse is not None, "compare.py asks for the command before it starts anything"
        listen = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", str(self.workers)]
        return [str(self.site.gatehouse), "serve", "platform", *listen]

    def environment(self) -> dict[str, str]:
        return {
            "GATEHOUSE_HOME": str(self.home),
            "GATEHOUSE_ADMIN_EMAIL": EMAIL,
            "GATEHOUSE_ADMIN_PASSWORD": self._password,
            # The limit is counted like any other limit, but never reached.
            "RATE_LIMIT_ADMIN_RPM": "100000000",
            "LOG_LEVEL": "warning",
            "INGRESS": self.edges[0],
            "OUTBOUND": self.edges[1],
            **({"SSL_CERT_FILE": str(self.site.authority)} if self.over_tls else {}),
            **self.settings,
        }

    def prepare(self) -> None:
        """Create a provider for each route of the mock, and an API key."""
        processes.wait_until(lambda: self._ready() or not self.alive(), seconds=self.patience, every=0.25)
        if not self._ready():
            raise NoAnswer(f"is never ready: {self.last_words()}")
        if self.key:
            return
        login = {"email": EMAIL, "password": self._password}
        session = self.call("POST", "/api/auth/login", login)["access_token"]
        for route in Route:
            provider = {
                "id": f"bench-{route.name.lower().replace('_', '-')}",
                "name": f"Bench {route.name}",
                "base_url": f"{self.upstream}{route}/v1",
                "format": "openai",
                "api_key": "sk-upstream",
                "models": [
                    {
                        "model_id": "gpt-4o-mini",
                        "display_name": "Bench",
                        "context_window": 128_000,
                        "input_cost_per_1k": 0.00015,
                        "output_cost_per_1k": 0.0006,
                    }
                ],
            }
            self.call("POST", "/api/admin/providers/byoe", provider, session)
        inspection = {"enabled": self.inspects}
        self.call("PATCH", "/api/v1/admin/org/feature-flags/dlp_enabled", inspection, session)
        self.key = self.call("POST", "/api/auth/api-keys", {"description": "bench"}, session)["api_key"]

    def _ready(self) -> bool:
        try:
            self.call("GET", "/api/health/ready")
        except (NoAnswer, OSError):
            return False
        return True

    def call(self, method: str, path: str, body: object = None, token: str = "") -> Any:
        """Call the administration API. Raises `NoAnswer` if the status is not 2xx."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise NoAnswer(f"{method} {path}: {error.code} {error.read()[:300]!r}") from error

    def target(self, route: Route) -> Target:
        return Target(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            model=f"bench-{route.name.lower().replace('_', '-')}/gpt-4o-mini",
            headers={"Authorization": f"Bearer {self.key}"},
        )

    def processes(self) -> dict[str, list[int]]:
        # PostgreSQL is not a descendant of the server, so that it survives if the server is killed.
        roles: dict[str, list[int]] = {"gateway": [], "recording": [], "supervision": []}
        pids = processes.tree(self._pid, *self._postmasters())
        for pid in pids:
            line = processes.command_line(pid)
            if "postgres" in line.split(" ")[0] or line.startswith("gatehouse: keeper"):
                roles["recording"].append(pid)
            elif pid == self._pid and len(pids) > 1:
                roles["supervision"].append(pid)
            else:
                roles["gateway"].append(pid)
        return roles

    def _postmasters(self) -> list[int]:
        try:
            return [int((self.home / "postgres" / "postmaster.pid").read_text().split()[0])]
        except (OSError, ValueError, IndexError):
            return []

    def recorded(self) -> int:
        """Return the number of usage records in the database."""
        return postgres.recorded(self._connection())

    def backlog(self) -> float:
        """Return the number of records that are in the journal but not in the database yet."""
        return postgres.backlog(self._connection(), self.home) / postgres.bytes_a_record(self.home)

    def settle(self) -> float:
        """Wait until every record is in the database. Return the monotonic time at which this was the case."""
        processes.wait_until(lambda: not postgres.backlog(self._connection(), self.home), seconds=900)
        return time.monotonic()

    def _connection(self) -> Any:
        if self._database is None:
            self._database = postgres.connect(self.home)
        return self._database

    def restart(self) -> None:
        """Stop the server and start it again with the same home folder. Raises `NoAnswer`."""
        self.stop()
        self.start()

    def stop(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        super().stop()


class Inspecting(Gatehouse):
    """Gatehouse with its default settings, with the 76 built-in patterns active."""

    name = "inspecting"
    inspects = True


class OneCore(Gatehouse):
    """Gatehouse with the recording processes on the core of the worker."""

    name = "one_core"
    apart = frozenset()


class Libraries(Gatehouse):
    name = "libraries"
    edges = "uvicorn", "aiohttp"


class GatehouseTls(Gatehouse):
    """Gatehouse with a provider over TLS."""

    name = "gatehouse_tls"
    over_tls = True
