"""`gatehouse keys`: signing keys and master keys are replaced without interruption."""

import asyncio
import base64
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jws import extract_compact
from tests.support.commands import run_command
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.secrets.sealing import Sealer, parse_master_keys
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded
from gatehouse.platform.access.tokens.rotation import WorkersNotReady, rotate
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.installation.resealing import SEALED
from gatehouse.platform.live.ports import sealing_context


def master_key(key_id: str) -> str:
    return f"{key_id}:{base64.b64encode(key_id.encode() * 16).decode()}"


OLD, NEW = master_key("k1"), master_key("k2")


@pytest.fixture(scope="module")
def own_home() -> Iterator[Path]:
    """A separate installation, so that tokens of other tests stay valid when keys are replaced."""
    with tempfile.TemporaryDirectory(prefix="gk", dir="/tmp", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
        embedded.stop(Path(directory))


@pytest.fixture(scope="module")
async def installed(own_home: Path) -> AsyncIterator[RunningPlatform]:
    settings = Settings.from_environment(
        {
            "GATEHOUSE_HOME": str(own_home),
            "GATEHOUSE_MASTER_KEY": OLD,
            "GATEHOUSE_ADMIN_PASSWORD": "the first admin's password",
            "RATE_LIMIT_REQUESTS_PER_MINUTE": "1000000",
        }
    )
    async with RunningPlatform.start(settings) as running:
        yield running


@pytest.fixture
async def people(installed: RunningPlatform) -> Tenant:
    # A test may have revoked the signing key of the fixture.
    installed._key = None
    return await installed.new_tenant()


async def command(home: Path, *words: str, keys: str = OLD) -> subprocess.CompletedProcess[str]:
    """Run `gatehouse ...` like an operator of this installation."""
    environment = {**os.environ, "GATEHOUSE_HOME": str(home), "GATEHOUSE_MASTER_KEY": keys}
    return await asyncio.to_thread(run_command, *words, environment=environment)


async def issued(installed: RunningPlatform, people: Tenant) -> str:
    """Return a new token of a client."""
    body = {"name": "a machine", "scopes": ["api:read"]}
    oauth_client = (await people.admin.client.post("/api/admin/oauth-clients/", json=body)).json()
    form = {"grant_type": "client_credentials", **{name: oauth_client[name] for name in ("client_id", "client_secret")}}
    token: str = (await installed.anonymous.post("/oauth/token", data=form)).json()["access_token"]
    return token


async def works(installed: RunningPlatform, token: str) -> bool:
    answer: httpx2.Response = await installed.client(token).get("/v1/models")
    return answer.status_code == 200


def kid_of(token: str) -> str:
    kid: str = extract_compact(token.encode()).headers()["kid"]
    return kid


async def published(installed: RunningPlatform) -> set[str]:
    return {key["kid"] for key in (await installed.anonymous.get("/.well-known/jwks.json")).json()["keys"]}


# signing keys -------------------------------------------------------------------------------------------------------


async def test_after_rotation_another_key_signs_and_the_old_tokens_stay_good(
    installed: RunningPlatform, own_home: Path, people: Tenant
) -> None:
    before = await issued(installed, people)
    result = await command(own_home, "keys", "rotate")
    assert result.returncode == 0, result.stderr
    after = await issued(installed, people)
    assert kid_of(after) != kid_of(before)
    assert await works(installed, before)
    assert await works(installed, after)
    assert (await people.user.client.get("/v1/models")).status_code == 200
    assert await published(installed) >= {kid_of(before), kid_of(after)}
    assert f"Key {kid_of(after)} signs from now on (1 running workers know it)." in result.stdout
    ((seconds,),) = installed.sql(
        "SELECT EXTRACT(EPOCH FROM expires_at - retired_at)::int FROM signing_keys WHERE kid = %s", [kid_of(before)]
    )
    assert seconds >= 86_400
    (event, *_) = await installed.audit(DEFAULT_TENANT, "signing_key.rotated")
    assert (event["actor_type"], event["details"]["retired"]) == ("system", [kid_of(before)])


async def test_no_token_is_refused_while_keys_rotate(installed: RunningPlatform, people: Tenant) -> None:
    refused: list[str] = []
    done = asyncio.Event()

    async def call() -> None:
        while not done.is_set():
            token = await issued(installed, people)
            if not await works(installed, token):
                refused.append(token)

    callers = [asyncio.create_task(call()) for _ in range(3)]
    for _ in range(3):
        await rotate(installed.host.database, installed.host.sealer)
    done.set()
    await asyncio.gather(*callers)
    assert refused == []


async def test_a_new_key_is_published_before_it_signs(installed: RunningPlatform, people: Tenant) -> None:
    """A disconnected worker would refuse tokens of the new key, so the old key stays in use."""
    installed.sql(
        "INSERT INTO nodes (id, name, pid, host, revision) VALUES (gen_random_uuid(), 'cut-off', 1, 'elsewhere', 0)"
    )
    signing = installed.sql("SELECT kid FROM signing_keys WHERE retired_at IS NULL")
    try:
        with pytest.raises(WorkersNotReady, match="cut-off"):
            await rotate(installed.host.database, installed.host.sealer, timeout_seconds=0.0)
    finally:
        installed.sql("DELETE FROM nodes WHERE name = 'cut-off'")
    assert installed.sql("SELECT kid FROM signing_keys WHERE retired_at IS NULL") == signing
    assert kid_of(await issued(installed, people)) == signing[0][0]
    # An unused published key is removed automatically within an hour.
    assert installed.sql("SELECT count(*) FROM signing_keys WHERE expires_at < now() + interval '61 minutes'")[0][0]


async def test_a_retired_key_is_forgotten_when_its_last_token_has_expired(
    installed: RunningPlatform, people: Tenant
) -> None:
    before = await issued(installed, people)
    await rotate(installed.host.database, installed.host.sealer)
    assert kid_of(before) in await published(installed)
    replica = installed.host.replica
    replica.forget_expired(replica.signing_keys_until[kid_of(before)])
    assert kid_of(before) not in await published(installed)
    assert not await works(installed, before)
    # From here on, the fixture must sign the tokens of users with the current key.
    installed._key = None
    assert await works(installed, (await installed.new_person(people.id)).token)


async def test_a_stolen_key_is_refused_at_once(installed: RunningPlatform, own_home: Path, people: Tenant) -> None:
    before = await issued(installed, people)
    assert await works(installed, before)
    result = await command(own_home, "keys", "rotate", "--stolen")
    assert result.returncode == 0, result.stderr
    assert not await works(installed, before)
    assert (await people.user.client.get("/v1/models")).status_code == 401
    installed._key = None
    fresh = await installed.new_person(people.id, "admin")
    assert (await fresh.client.get("/v1/models")).status_code == 200
    assert len(await published(installed)) == 1


async def test_concurrent_rotations_leave_one_signing_key(installed: RunningPlatform) -> None:
    database, sealer = installed.host.database, installed.host.sealer
    await asyncio.gather(*[rotate(database, sealer) for _ in range(3)])
    assert len(installed.sql("SELECT kid FROM signing_keys WHERE retired_at IS NULL")) == 1


# the master key -----------------------------------------------------------------------------------------------------


@pytest.fixture
def provider(installed: RunningPlatform) -> Iterator[str]:
    """Create a provider whose credentials are sealed under the old key, and return its id."""
    sealer = _sealer(OLD)
    sealed = sealer.seal(b'{"api_key": "sk-secret"}', context=sealing_context(DEFAULT_TENANT, "sealed-one"))
    installed.sql(
        "INSERT INTO providers (tenant_id, id, name, kind, sealed_credentials)"
        " VALUES (%s, 'sealed-one', 'x', 'openai', %s)",
        [DEFAULT_TENANT, sealed],
    )
    yield "sealed-one"
    installed.sql("DELETE FROM providers WHERE id = 'sealed-one'")


def _sealer(text: str) -> Sealer:
    keys = parse_master_keys(text)
    return Sealer(keys.keys, keys.current)


def everything(installed: RunningPlatform) -> list[Any]:
    return installed.sql(
        "SELECT sealed_private FROM signing_keys UNION ALL"
        " SELECT sealed_credentials FROM providers WHERE sealed_credentials IS NOT NULL"
    )


async def test_all_sealed_texts_are_sealed_under_the_new_key(
    installed: RunningPlatform, own_home: Path, provider: str
) -> None:
    result = await command(own_home, "keys", "rotate-master", keys=f"{NEW},{OLD}")
    try:
        assert result.returncode == 0, result.stderr
        assert "providers.sealed_credentials: 1 sealed again" in result.stdout
        assert all(sealed.startswith("v1.k2.") for (sealed,) in everything(installed))
        ((sealed,),) = installed.sql("SELECT sealed_credentials FROM providers WHERE id = %s", [provider])
        context = sealing_context(DEFAULT_TENANT, provider)
        assert _sealer(NEW).open(sealed, context=context) == b'{"api_key": "sk-secret"}'
        (event,) = await installed.audit(DEFAULT_TENANT, "master_key.rotated")
        assert event["details"]["resealed"]["providers.sealed_credentials"] == 1
        again = await command(own_home, "keys", "rotate-master", keys=NEW)
        assert (again.returncode, again.stdout.startswith("Nothing to do")) == (0, True)
    finally:
        await command(own_home, "keys", "rotate-master", keys=f"{OLD},{NEW}")


async def test_a_missing_old_key_is_named_and_nothing_changes(
    installed: RunningPlatform, own_home: Path, provider: str
) -> None:
    before = everything(installed)
    result = await command(own_home, "keys", "rotate-master", keys=NEW)
    assert result.returncode != 0
    assert "k1" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert everything(installed) == before


async def test_a_text_that_does_not_open_is_named_and_nothing_changes(
    installed: RunningPlatform, own_home: Path, provider: str
) -> None:
    installed.sql("UPDATE providers SET sealed_credentials = sealed_credentials || 'AAAA' WHERE id = %s", [provider])
    before = everything(installed)
    result = await command(own_home, "keys", "rotate-master", keys=f"{NEW},{OLD}")
    assert result.returncode != 0
    assert provider in result.stderr
    assert everything(installed) == before


def test_every_sealed_column_of_the_schema_is_resealed(installed: RunningPlatform) -> None:
    columns = installed.sql(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name LIKE '%%sealed%%'"
    )
    assert set(columns) == {(sealed.table, sealed.column) for sealed in SEALED}
