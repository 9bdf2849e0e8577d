"""`gatehouse serve platform` as real processes, for tests that kill and stop them or limit their resources.

with GatehouseServer(workers=4, env={"REDIS_URL": url}) as server:
    server.url, server.key          its address, and a key of its first admin (an operator)
    server.sql(...)                 runs a statement as the owner of its database
    server.new_key("user")          a key of a new user, in the tenant `default`
    server.add_provider(...)        an OpenAI-compatible provider and its models
    server.workers                  the gateway processes
    server.stop_database()          and start_database()
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID, uuid4

import psutil
import psycopg
from psycopg.types.json import Jsonb
from tests.support import http_observer
from tests.support.launcher import Launched, launch
from tests.support.leaks import LEAK_DETECTOR
from tests.support.watched import see_databases

import gatehouse
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.tokens import mint_api_key
from gatehouse.foundation.storage import embedded
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.installation.bootstrap import touch

#: Seconds of a database outage under load.
OUTAGE_SECONDS = float(os.environ.get("GATEHOUSE_OUTAGE_SECONDS", "4"))

#: Rate limits have their own tests and are switched off in others.
UNLIMITED: Mapping[str, str] = {"RATE_LIMIT_REQUESTS_PER_MINUTE": "100000000", "RATE_LIMIT_ADMIN_RPM": "100000000"}

_PASSED_ON = ("PATH", "HOME", "LANG", "PYTHONPATH", "INGRESS", "OUTBOUND")

ADMIN_EMAIL = "root@gatehouse.test"
ADMIN_PASSWORD = "the first admin's password"


#: The folder of the package's sources, and the name of the file with their digest in a home that is copied.
_SOURCES: Final = Path(gatehouse.__file__).parent
_SOURCES_FILE: Final = "sources"

#: Settings that change the result of a first start. A server with one of them cannot use a copied home.
_OF_FIRST_STARTS: Final = {"DATABASE_URL", "GATEHOUSE_MASTER_KEY", "GATEHOUSE_ADMIN_EMAIL", "GATEHOUSE_ADMIN_PASSWORD"}


class GatehouseServer:
    """A server with an embedded PostgreSQL, unless `env` has a `DATABASE_URL`. `home` is kept. Without it, the server
    has a temporary home, which is empty with `is_first_start`, and otherwise contains the database of an earlier first
    start. With `imports_anew`, the process shares no memory with other servers."""

    def __init__(
        self,
        *,
        workers: int = 1,
        env: Mapping[str, str] | None = None,
        home: Path | None = None,
        arguments: Sequence[str] = (),
        imports_anew: bool = False,
        is_first_start: bool = False,
    ) -> None:
        # The path is short, because a socket's path may have 100 characters.
        self._made = None if home is not None else Path(tempfile.mkdtemp(prefix="gh", dir="/tmp"))
        self.home = home or self._made or Path()
        self.arguments = ["--workers", str(workers), *arguments]
        self.env = {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            "GATEHOUSE_HOME": str(self.home),
            "GATEHOUSE_ADMIN_EMAIL": ADMIN_EMAIL,
            "GATEHOUSE_ADMIN_PASSWORD": ADMIN_PASSWORD,
            **UNLIMITED,
            **(env or {}),
        }
        self.log_path = self.home / "server.log"
        self.url = ""
        self._imports_anew = imports_anew
        self._copies_home = not is_first_start and self._made is not None and _OF_FIRST_STARTS.isdisjoint(env or {})
        self._process: subprocess.Popen[bytes] | Launched | None = None
        self._owner: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # start and stop ----------------------------------------------------------------------------------------------

    def start(self, *, patience: float = 60.0) -> None:
        """Start the server and return when every worker serves. After `stop` or `kill` the port is the same as
        before."""
        port = self.url.rpartition(":")[2] or "0"
        arguments = ["serve", "platform", "--port", port, *self.arguments]
        if self._copies_home and not self.log_path.exists():
            _copy_first_start(self.home)
        begins = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            if self._imports_anew:
                command = [sys.executable, "-P", "-m", "gatehouse", *arguments]
                self._process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, cwd=self.home)
            else:
                self._process = launch(arguments, env=self.env, cwd=self.home, log=log)
        deadline = time.monotonic() + patience
        while True:
            text = self.log_path.read_bytes()[begins:].decode(errors="replace")
            if match := re.search(r"serves on (http\S+)", text):
                self.url = match[1]
                http_observer.register(self.url)
                return
            assert self._process.poll() is None, f"ended during its start:\n{text}"
            assert time.monotonic() < deadline, f"not ready after {patience:.0f} s:\n{text}"
            time.sleep(0.02)

    def stop(self, *, patience: float = 60.0) -> int:
        """Send SIGTERM, wait for the end, and return the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)
        return self._process.wait(patience)

    def kill(self) -> None:
        """Kill the supervisor and all its processes with SIGKILL. The database continues."""
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            family = [psutil.Process(self._process.pid), *self._children()]
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(family[1:], timeout=10)
        self._process.wait(10)

    def close(self) -> None:
        """End everything, and remove a temporary home. Checks that log and database contain no secret."""
        http_observer.unregister(self.url)
        if self.log_path.exists():
            LEAK_DETECTOR.add_text("a server's log", self.log_path.read_bytes())
        with contextlib.suppress(psycopg.OperationalError):
            see_databases(self.database_url)
        if self._owner is not None:
            self._owner.close()
        if self._process is not None and self._process.poll() is None:
            self.kill()
        embedded.stop(self.home)
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The supervisor's process."""
        assert self._process is not None
        return self._process.pid

    @property
    def workers(self) -> list[psutil.Process]:
        """Return the gateway processes, which have `suspend()`, `resume()`, `kill()`, `memory_info()` and so on."""
        return self._children("gatehouse: gateway")

    @property
    def keepers(self) -> list[psutil.Process]:
        return self._children("gatehouse: keeper")

    @property
    def detection(self) -> list[psutil.Process]:
        """Return the process with the models of DLP, or None while it is restarted."""
        return self._children("gatehouse.detection.service")

    def _children(self, word: str | None = None) -> list[psutil.Process]:
        """Return the supervisor's live processes, or those whose command contains this word."""
        results = []
        for process in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if word is None or word in " ".join(process.cmdline()):
                    results.append(process)
        return results

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    # database ----------------------------------------------------------------------------------------------------

    def stop_database(self) -> None:
        """Stop the database until `start_database`. The supervisor, which would restart it, is suspended meanwhile."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None
        if self.running:
            psutil.Process(self.pid).suspend()
        embedded.stop(self.home)

    def start_database(self) -> None:
        # In a separate process, because the wheel remembers that it has started the database and would not start it
        # again.
        subprocess.run(embedded.restart_command(self.home), check=True, timeout=60)
        if self.running:
            psutil.Process(self.pid).resume()

    @property
    def database_url(self) -> str:
        """Connect as the owner."""
        return self.env.get("DATABASE_URL") or f"postgresql://postgres:@/postgres?host={self.home / 'postgres'}"

    def sql(self, query: str, parameters: Any = None) -> list[Any]:
        """Run a statement as the owner, who sees the rows of all tenants. Return the rows as tuples."""
        cursor = self._connection().execute(query, parameters)
        return cursor.fetchall() if cursor.description else []

    def touch(self, topic: str, key: object) -> None:
        """Notify the workers to reload this topic and key, as a change does."""
        connection = self._connection()
        with connection.transaction():
            touch(connection, topic, str(key))

    def _connection(self) -> psycopg.Connection[Any]:
        if self._owner is None or self._owner.closed:
            self._owner = psycopg.connect(self.database_url, autocommit=True)
        return self._owner

    # keys and providers ------------------------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """Return an API key of the first admin, who is an operator."""
        path, deadline = self.home / "trial.key", time.monotonic() + 60
        # It is created when the server serves.
        while not path.exists() or not (key := path.read_text().strip()):
            assert time.monotonic() < deadline, "no key was made"
            time.sleep(0.02)
        return key

    def new_key(self, role: str = "user") -> str:
        """Create a user of the tenant `default` and return an API key that every worker knows."""
        user_id, key_id, minted = new_id(), new_id(), mint_api_key()
        self.sql(
            "INSERT INTO users (id, tenant_id, email, role) VALUES (%s, %s, %s, %s)",
            [user_id, DEFAULT_TENANT, f"{role}-{uuid4().hex[:12]}@example.test", role],
        )
        self.sql(
            "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description)"
            " VALUES (%s, %s, %s, %s, %s, 'a test''s key')",
            [key_id, DEFAULT_TENANT, user_id, minted.shown, minted.digest],
        )
        self.touch("user", user_id)
        self.touch("api_key", key_id)
        self.settled()
        return minted.plaintext

    def key_id(self, key: str) -> UUID:
        (row,) = self.sql("SELECT id FROM api_keys WHERE digest = sha256(%s::bytea)", [key.encode()])
        return UUID(str(row[0]))

    def add_provider(self, provider_id: str, base_url: str, models: Sequence[str], **config: Any) -> dict[str, UUID]:
        """Add an OpenAI-compatible provider to the tenant `default`. Return the ids of its models in the catalog."""
        self.sql(
            "INSERT INTO providers (tenant_id, id, name, kind, config) VALUES (%s, %s, %s, 'openai_compatible', %s)",
            [DEFAULT_TENANT, provider_id, provider_id, Jsonb({"base_url": base_url, **config})],
        )
        ids = {}
        for model_id in models:
            ids[model_id] = new_id()
            self.sql(
                "INSERT INTO model_configs (id, tenant_id, provider, model_id) VALUES (%s, %s, %s, %s)",
                [ids[model_id], DEFAULT_TENANT, provider_id, model_id],
            )
        self.touch("policy", DEFAULT_TENANT)
        self.settled()
        return ids

    def settled(self, *, patience: float = 60.0) -> None:
        """Wait until every worker has confirmed all committed changes."""
        deadline = time.monotonic() + patience
        query = (
            "SELECT count(*) FROM nodes, revision_head h WHERE nodes.kind = 'gateway' AND nodes.revision < h.revision"
        )
        while self.sql(query)[0][0]:
            assert time.monotonic() < deadline, "a worker does not follow"
            time.sleep(0.01)


def _copy_first_start(home: Path) -> None:
    """Copy the home of a server that has started and stopped, which takes a tenth of the time of a first start. The
    original is created again when the sources have changed."""
    checkout = hashlib.sha256(str(_SOURCES).encode()).hexdigest()[:12]
    template = Path(tempfile.gettempdir()) / f"gatehouse-first-start-{os.getuid()}-{checkout}"
    with Path(f"{template}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if _sources_of(template) != _sources():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _sources_of(template) != _sources():
                _make_first_start(template)
        # `-a` keeps the owners of files. If the tests run as root, PostgreSQL runs as another user.
        subprocess.run(["cp", "-a", f"{template}/.", home], check=True)


def _make_first_start(template: Path) -> None:
    shutil.rmtree(template, ignore_errors=True)
    # A socket's path may have 100 characters.
    home = Path(tempfile.mkdtemp(prefix="gh", dir="/tmp"))
    with GatehouseServer(home=home) as server:
        assert server.key
        server.settled()
        assert server.stop() == 0
    server.log_path.unlink()
    (home / _SOURCES_FILE).write_text(_sources())
    shutil.move(home, template)


def _sources_of(template: Path) -> str | None:
    try:
        return (template / _SOURCES_FILE).read_text()
    except FileNotFoundError:
        return None


@functools.cache
def _sources() -> str:
    """Return a digest that changes with each change of the package's sources."""
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.rglob("*")):
        if path.suffix in {".py", ".sql"}:
            status = path.stat()
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
