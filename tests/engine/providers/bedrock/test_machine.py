"""The credentials of the machine's role. Tests use a real socket, or a fake service and clock if time must pass."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.engine.providers.conftest import call, candidate, everything
from tests.support.upstream import upstream
from tests.support.vendors.bedrock import KEY_ID, REGION, SECRET, Bedrock

from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.authentication import renewal
from gatehouse.engine.providers.authentication.renewal import (
    MIN_LIFETIME_SECONDS,
    RENEW_BEFORE_EXPIRY_SECONDS,
    RENEWAL_INTERVAL_SECONDS,
)
from gatehouse.engine.providers.bedrock.machine import Machine
from gatehouse.engine.providers.bedrock.signing import SigningIdentity
from gatehouse.foundation.outbound import AddressRefused, OutboundFailed, OutboundRequest, ReplyTooLarge
from gatehouse.foundation.outbound.metadata import MAX_BYTES, request_metadata

#: For an identity that needs no token endpoint.
NO_NETWORK: Any = None
TOKEN = "session/token+of=the=role"


def credentials_body(expires: float | None = None, **more: Any) -> bytes:
    keys = {"Code": "Success", "AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, "Token": TOKEN, **more}
    if expires is not None:
        keys["Expiration"] = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(keys).encode()


class Metadata:
    """A server that answers like the metadata service of an instance, or like a container's agent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.seen.append((request.method, request.path))
        match request.method, request.path:
            case "PUT", "/latest/api/token":
                assert request.headers["X-aws-ec2-metadata-token-ttl-seconds"].isdigit()
                return web.Response(text="the-token")
            case "GET", "/container":
                good = request.headers.get("Authorization") == "the-word"
                return web.Response(body=credentials_body(4e9), status=200 if good else 401)
            case "GET", "/huge":
                return web.Response(body=b"x" * (MAX_BYTES + 1))
            case "GET", "/moved":
                return web.Response(status=302, headers={"Location": "/latest/api/token"})
        if request.headers.get("X-aws-ec2-metadata-token") != "the-token":
            return web.Response(status=401)
        if request.path == "/latest/meta-data/iam/security-credentials/":
            return web.Response(text="the-role\n")
        return web.Response(body=credentials_body(4e9))


@pytest.fixture
async def metadata():
    served = Metadata()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    served.url = site.name
    yield served
    await runner.cleanup()


class ByHand:
    """A metadata service and a clock that the test controls."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.questions = 0
        self.life: float | None = 3600.0
        self.let_go = asyncio.Event()
        self.let_go.set()
        environment = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/keys"}
        self.machine = Machine(environment, request=self._ask, now=lambda: self.now)

    async def _ask(self, method: str, url: str, headers: Mapping[str, str]) -> bytes:
        assert (method, url) == ("GET", "http://169.254.170.2/v2/keys")
        self.questions += 1
        await self.let_go.wait()
        if self.life is None:
            raise OutboundFailed
        return credentials_body(self.now + self.life, AccessKeyId=f"KEY{self.questions}")

    async def key(self) -> str:
        return (await self.machine.get(NO_NETWORK)).access_key_id


async def test_the_instance_metadata_is_queried_with_a_token(metadata) -> None:
    machine = Machine({"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url + "/"})
    identity = await machine.get(NO_NETWORK)
    expected = SigningIdentity(access_key_id=KEY_ID, secret_access_key=SECRET, session_token=TOKEN, expires_at=4e9)
    assert identity == expected
    roles = "/latest/meta-data/iam/security-credentials/"
    assert metadata.seen == [("PUT", "/latest/api/token"), ("GET", roles), ("GET", roles + "the-role")]


@pytest.mark.parametrize("by_file", [False, True])
async def test_a_containers_agent_is_queried_with_its_token(metadata, tmp_path: Path, by_file: bool) -> None:
    word = tmp_path / "word"
    word.write_text("the-word\n")
    environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata.url}/container"}
    if by_file:
        environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(word)
    else:
        environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "the-word"
    assert (await Machine(environment).get(NO_NETWORK)).session_token == TOKEN


async def test_the_environments_keys_come_first() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T"}
    expected = SigningIdentity(access_key_id="A", secret_access_key="S", session_token="T")
    assert await Machine(environment).get(NO_NETWORK) == expected


@pytest.mark.parametrize(
    "environment",
    [
        {"AWS_EC2_METADATA_DISABLED": "True"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://203.0.113.9/keys"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/keys"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/container"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/huge"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/moved"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "{url}/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/no/such/file"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"},
    ],
)
async def test_a_machine_without_a_role_is_reported(metadata, environment) -> None:
    machine = Machine({name: value.format(url=metadata.url) for name, value in environment.items()})
    with pytest.raises(ProviderFailed, match="no_instance_role") as failed:
        await machine.get(NO_NETWORK)
    assert failed.value.move_on


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"AccessKeyId": "A"}', b"\xff"])
async def test_malformed_credentials_are_refused(body) -> None:
    async def ask(method: str, url: str, headers: Mapping[str, str]) -> bytes:
        return body

    with pytest.raises(ProviderFailed, match="no_instance_role"):
        await Machine({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"}, request=ask).get(NO_NETWORK)


async def test_concurrent_calls_send_one_request() -> None:
    world = ByHand()
    world.let_go.clear()
    waiting = [asyncio.create_task(world.key()) for _ in range(20)]
    await asyncio.sleep(0)
    # A cancelled call does not affect the other calls.
    waiting[0].cancel()
    await asyncio.sleep(0)
    world.let_go.set()
    assert await asyncio.gather(*waiting[1:]) == ["KEY1"] * 19
    assert world.questions == 1


async def test_keys_are_renewed_in_the_background_before_they_expire() -> None:
    world = ByHand()
    assert await world.key() == "KEY1"
    world.now += 3600 - RENEW_BEFORE_EXPIRY_SECONDS - 1
    assert await world.key() == "KEY1"
    assert world.questions == 1
    world.now += 2
    world.let_go.clear()
    # The renewal gets no answer, and no call waits for it.
    assert [await world.key() for _ in range(3)] == ["KEY1"] * 3
    await asyncio.sleep(0)
    assert world.questions == 2
    world.let_go.set()
    await asyncio.sleep(0.01)
    assert await world.key() == "KEY2"
    assert world.questions == 2


async def test_short_lived_keys_are_cached_between_calls() -> None:
    world = ByHand()
    world.life = RENEW_BEFORE_EXPIRY_SECONDS / 2
    for _ in range(5):
        await world.key()
        await asyncio.sleep(0.001)
    assert world.questions == 1
    world.now += RENEWAL_INTERVAL_SECONDS
    await world.key()
    await asyncio.sleep(0.001)
    assert world.questions == 2


async def test_keys_are_used_until_they_expire_while_the_service_is_unavailable() -> None:
    world = ByHand()
    await world.key()
    world.life = None
    world.now += 3600 - MIN_LIFETIME_SECONDS - 1
    assert await world.key() == "KEY1"
    await asyncio.sleep(0.001)
    world.now += 1
    with pytest.raises(ProviderFailed, match="no_instance_role"):
        await world.key()
    world.life = 3600
    with pytest.raises(ProviderFailed, match="no_instance_role"):
        await world.key()
    assert world.questions == 2, "a service that failed is left in peace for some seconds"
    world.now += 10
    assert await world.key() == "KEY3"


async def test_the_wait_for_a_hanging_service_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(renewal, "RENEWAL_TIMEOUT_SECONDS", 0.05)
    world = ByHand()
    world.let_go.clear()
    async with asyncio.timeout(2):
        with pytest.raises(ProviderFailed, match="no_instance_role"):
            await world.key()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_with_the_machines_role_signs_with_it(ask, metadata, monkeypatch, stream) -> None:
    machine = Machine({"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url})
    monkeypatch.setattr(KINDS["bedrock"], "_machine", machine)
    vendor = Bedrock(session_token=TOKEN)
    async with upstream(vendor) as server:
        place = candidate("bedrock", base_url=server.url, cloud_region=REGION, use_instance_role=True)
        reply = await ask(call(stream=stream), place, secret={})
        text = await everything(reply) if stream else reply.body
        await reply.close()
    assert b"Hi" in text
    assert vendor.faults == []


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.170.2", "169.254.170.23", "[fd00:ec2::254]"])
async def test_no_other_request_reaches_the_metadata_service(outbound, address) -> None:
    with pytest.raises(AddressRefused):
        await outbound.send(OutboundRequest(method="GET", url=f"http://{address}/latest/api/token", headers={}))


async def test_the_answer_of_a_metadata_service_is_bounded(metadata) -> None:
    with pytest.raises(ReplyTooLarge):
        await request_metadata("GET", f"{metadata.url}/huge", {})
