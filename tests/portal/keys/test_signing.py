"""Keys of the portal's tokens, rotated while tokens are in use (`gatehouse keys rotate portal`)."""

import asyncio
from base64 import b64encode

import psycopg
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from tests.portal.conftest import OLD
from tests.support.portal import RunningPortal

from gatehouse.foundation.secrets.sealing import Sealer, parse_master_keys
from gatehouse.foundation.storage.database import sqlalchemy_url
from gatehouse.portal.keys import signing
from gatehouse.portal.keys.resealing import reseal

NEW = f"k2:{b64encode(b'another master key of 32 bytes. ').decode()}"


def rotated(portal: RunningPortal, *, stolen: bool = False) -> tuple[str, list[str]]:
    with psycopg.connect(portal.installed.owner_url) as connection:
        return signing.rotate(connection, portal.installed.sealer, stolen=stolen)


async def kids(portal: RunningPortal) -> list[str]:
    return [key["kid"] for key in (await portal.anonymous.get("/.well-known/jwks.json")).json()["keys"]]


async def test_after_a_rotation_a_new_key_signs_and_old_tokens_stay_valid(apart: RunningPortal) -> None:
    org = await apart.new_org()
    (first,) = await kids(apart)
    new, old = rotated(apart)
    assert old == [first]
    ((actor, details),) = apart.sql("SELECT actor_type, details FROM audit WHERE resource_id = %s", [new])
    assert (actor, details) == ("system", {"previous": [first], "stolen": False})
    while await kids(apart) != [new, first]:
        await asyncio.sleep(0.05)
    assert (await org.client.get(org.path)).status_code == 200
    token = (await apart.admin.post(f"{org.path}/tokens", json={})).json()["token"]
    ((kid,),) = apart.sql("SELECT kid FROM signing_keys WHERE retired_at IS NULL")
    assert kid == new
    assert (await apart.client(token).get(org.path)).status_code == 200


async def test_tokens_of_a_stolen_key_are_refused(apart: RunningPortal) -> None:
    org = await apart.new_org()
    new, _ = rotated(apart, stolen=True)
    while await kids(apart) != [new]:
        await asyncio.sleep(0.05)
    assert (await org.client.get(org.path)).status_code == 401
    token = (await apart.admin.post(f"{org.path}/tokens", json={})).json()["token"]
    assert (await apart.client(token).get(org.path)).status_code == 200


async def test_the_keys_are_sealed_and_can_be_sealed_under_another_master_key(apart: RunningPortal) -> None:
    org = await apart.new_org()
    ((before,),) = apart.sql("SELECT sealed_private FROM signing_keys")
    assert "PRIVATE" not in before
    keys = parse_master_keys(f"{NEW},{OLD}")
    engine = create_async_engine(sqlalchemy_url(apart.installed.owner_url))
    async with AsyncSession(engine) as session:
        resealed = await reseal(session, Sealer(keys.keys, keys.current))
    await engine.dispose()
    assert resealed.resealed == {"portal.signing_keys.sealed_private": 1, "portal.authorities.sealed_private": 1}
    ((after,),) = apart.sql("SELECT sealed_private FROM signing_keys")
    assert after.startswith("v1.k2.")
    settings = apart.installed.settings.model_copy(update={"gatehouse_master_key": SecretStr(NEW)})
    async with RunningPortal.start(settings) as restarted:
        token = (await restarted.admin.post(f"{org.path}/tokens", json={})).json()["token"]
        assert (await restarted.client(token).get(org.path)).status_code == 200
        await restarted.host.authorities.issuing()
