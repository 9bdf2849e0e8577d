"""An upgrade without downtime: the previous version serves on the new schema until the present version has replaced it
(docs/operations.md, Upgrades).

`earlier/0003.tar.xz` is the package with the schema 0003, without the models' data: the result of `git archive
--prefix=0003/ COMMIT src/gatehouse` without `detection/*/data`. The test of the next schema needs the next archive.
"""

import asyncio
import base64
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.support.load import Load, chat, load
from tests.support.server import GatehouseServer

import gatehouse.detection
from gatehouse.foundation.storage import embedded

EARLIER = Path(__file__).parent / "earlier" / "0003.tar.xz"
CHAT = chat("sandbox/echo")
FLAGS = "/api/v1/admin/org/feature-flags"
#: pause of each caller between its requests
REST_SECONDS = 0.05


@pytest.fixture
def database() -> Iterator[str]:
    # The path is short, because a socket's path may have 100 characters.
    home = Path(tempfile.mkdtemp(prefix="gu", dir="/tmp"))
    try:
        yield embedded.start(home)
    finally:
        embedded.stop(home)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def shared(database: str) -> dict[str, str]:
    """Return the settings of both versions."""
    models = Path(gatehouse.detection.__file__).parent
    return {
        "DATABASE_URL": database,
        "GATEHOUSE_MASTER_KEY": base64.b64encode(os.urandom(32)).decode(),
        "SANDBOX_ENABLED": "true",
        "NER_MODEL_PATH": str(models / "entities" / "data"),
        "SEMANTIC_MODEL_PATH": str(models / "semantic" / "data"),
    }


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    with tarfile.open(EARLIER) as package:
        package.extractall(tmp_path, filter="data")
    return tmp_path / "0003" / "src"


def gatehouse_command(server: GatehouseServer, *arguments: str) -> str:
    """Run a command of the server's version on its database."""
    command = [sys.executable, "-P", "-m", "gatehouse", *arguments]
    done = subprocess.run(
        command, env=server.env, cwd=server.home, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answered(*loads: Load) -> int:
    """Check that the requests are answered with 200."""
    for one in loads:
        assert set(one.statuses) == {200}
    return sum(one.statuses[200] for one in loads)


async def recorded(server: GatehouseServer, requests: int) -> None:
    """Wait until this many requests are recorded. Fails if there are fewer or more."""
    query = "SELECT (SELECT count(*) FROM usage_records), (SELECT count(*) FROM audit_events WHERE action = %s)"
    for _ in range(600):
        (counts,) = server.sql(query, ["gateway.request"])
        if counts == (requests, requests):
            return
        assert max(counts) <= requests
        await asyncio.sleep(0.1)
    raise AssertionError(f"{counts} of {requests} are on record")


async def test_an_upgrade_under_load_fails_no_request_and_loses_no_record(
    shared: dict[str, str], earlier: Path
) -> None:
    old = GatehouseServer(env={**shared, "PYTHONPATH": str(earlier)}, imports_anew=True)
    new = GatehouseServer(env=shared)
    try:
        await asyncio.to_thread(gatehouse_command, old, "migrate")
        await asyncio.to_thread(old.start, patience=240)
        assert old.sql("SELECT version_num FROM alembic_version") == [("0003",)]
        key = old.new_key("admin")
        admin = {"Authorization": f"Bearer {key}"}
        async with (
            load(old.url, (6, key, CHAT), rest_seconds=REST_SECONDS) as before,
            httpx2.AsyncClient(headers=admin, timeout=60) as client,
        ):
            await before.until(100, patience=120)
            assert "up to date" in await asyncio.to_thread(gatehouse_command, new, "migrate")
            assert old.sql("SELECT version_num FROM alembic_version") != [("0003",)]
            # The previous version continues: requests, records and administration.
            await before.until(100, patience=120)
            changed = await client.patch(f"{old.url}{FLAGS}/dlp_enabled", json={"enabled": False})
            assert changed.status_code == 200, changed.text
            await asyncio.to_thread(new.start, patience=240)
            async with load(new.url, (6, key, CHAT), rest_seconds=REST_SECONDS) as during:
                # Both versions run, and each follows the changes that the other one makes.
                await asyncio.gather(before.until(100, patience=120), during.until(100, patience=120))
                assert (await client.get(f"{new.url}{FLAGS}")).json()["dlp_enabled"] is False
        async with load(new.url, (6, key, CHAT), rest_seconds=REST_SECONDS) as after:
            assert await asyncio.to_thread(old.stop, patience=120) == 0
            await after.until(100, patience=120)
        await recorded(new, answered(before, during, after))
        gatehouse_command(new, "audit", "verify")
    finally:
        for server in (old, new):
            server.close()
