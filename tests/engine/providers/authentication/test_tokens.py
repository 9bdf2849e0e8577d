"""Tokens of a real token endpoint: one for all calls, renewed before it expires, and a clear failure without it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.engine.providers.conftest import call, candidate
from tests.support.upstream import upstream
from tests.support.vendors.google_cloud import CLAUDE, CONFIG, GoogleCloud
from tests.support.vendors.google_cloud import SECRET as KEY_SECRET

from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.authentication import renewal, tokens
from gatehouse.engine.providers.authentication.google import GoogleTokens
from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.engine.providers.authentication.tokens import AccessToken, TokenCache, read_token


class World:
    """Google Cloud with a clock that the test sets."""

    def __init__(self, ask: Any, cloud: GoogleCloud, url: str) -> None:
        self.cloud = cloud
        self.url = url
        self.passed = 0.0
        self._ask = ask

    async def call(self) -> None:
        place = candidate("vertex_ai", CLAUDE, base_url=self.url, **CONFIG)
        await self._ask(call(), place, secret=KEY_SECRET)


@pytest.fixture
async def world(ask, monkeypatch):
    cloud = GoogleCloud()
    async with upstream(cloud) as server:
        world = World(ask, cloud, server.url)
        loop = asyncio.get_running_loop()
        started, began = renewal.time.time(), loop.time()
        google = GoogleTokens(
            {}, token_url=f"{server.url}/token", now=lambda: started + loop.time() - began + world.passed
        )
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", google)
        # The fake checks the time of assertions by the system's clock.
        monkeypatch.setattr(google, "_assertion", GoogleTokens({}, token_url=f"{server.url}/token")._assertion)
        yield world


async def test_concurrent_calls_share_one_token(world) -> None:
    await asyncio.gather(*(world.call() for _ in range(10)))
    assert len(world.cloud.tokens) == 1


async def test_a_token_is_renewed_in_the_background_before_it_expires(world) -> None:
    await world.call()
    world.passed = 3599 - renewal.RENEW_BEFORE_EXPIRY_SECONDS - 5
    await world.call()
    assert len(world.cloud.tokens) == 1
    world.passed += 10
    await world.call()
    async with asyncio.timeout(5):
        while len(world.cloud.tokens) < 2:
            await asyncio.sleep(0.01)


async def test_an_expired_token_is_not_used(world) -> None:
    await world.call()
    world.cloud.revoked.add(world.cloud.tokens[0])
    world.passed = 4000
    await world.call()
    assert len(world.cloud.tokens) == 2


async def test_calls_use_a_token_until_it_expires_while_the_endpoint_fails(world) -> None:
    await world.call()
    world.cloud.token_status = 503
    world.passed = 3599 - renewal.MIN_LIFETIME_SECONDS - 5
    await world.call()
    world.passed += 10
    with pytest.raises(ProviderFailed, match="no_access_token") as failed:
        await world.call()
    assert failed.value.move_on


async def test_a_token_that_the_provider_refuses_is_replaced(world) -> None:
    await world.call()
    world.cloud.revoked.add(world.cloud.tokens[0])
    # A new token stays, so that a provider that refuses every token does not cause a renewal for each call.
    for _ in range(2):
        with pytest.raises(ProviderFailed, match="unauthorized"):
            await world.call()
    assert len(world.cloud.tokens) == 1
    world.passed = renewal.RENEWAL_INTERVAL_SECONDS + 1
    with pytest.raises(ProviderFailed, match="unauthorized"):
        await world.call()
    await world.call()
    assert len(world.cloud.tokens) == 2


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (400, None, "unauthorized"),
        (401, None, "unauthorized"),
        (500, None, "no_access_token"),
        (429, None, "no_access_token"),
        (302, None, "no_access_token"),
        (200, b"<html>", "no_access_token"),
        (200, b'{"access_token": "a b"}', "no_access_token"),
        (200, b'{"access_token": "a\\r\\nx-admin: 1"}', "no_access_token"),
        (200, b'{"access_token": ""}', "no_access_token"),
        (200, b'{"access_token": "' + b"x" * 70_000 + b'"}', "no_access_token"),
    ],
)
async def test_a_failing_token_endpoint_is_a_failure_of_the_provider(world, status, body, reason) -> None:
    world.cloud.token_status, world.cloud.token_body = status, body
    with capture_logs() as logs, pytest.raises(ProviderFailed, match=reason) as failed:
        await world.call()
    assert failed.value.move_on
    assert world.cloud.calls == []
    (line,) = logs
    assert (line["event"], line["provider"]) == ("provider_identity.not_renewed", "p")
    assert "words of the token endpoint" not in str(line)
    assert "PRIVATE KEY" not in str(line)


async def test_a_failed_endpoint_is_not_called_again_at_once(world) -> None:
    world.cloud.token_status = 503
    for _ in range(5):
        with pytest.raises(ProviderFailed, match="no_access_token"):
            await world.call()
    world.cloud.token_status = 200
    with pytest.raises(ProviderFailed, match="no_access_token"):
        await world.call()
    world.passed = renewal.RETRY_INTERVAL_SECONDS + 1
    await world.call()


async def test_an_endpoint_that_hangs_is_waited_for_a_bounded_time(ask, monkeypatch) -> None:
    monkeypatch.setattr(renewal, "RENEWAL_TIMEOUT_SECONDS", 0.1)

    async def hang(connection: Any) -> None:
        await asyncio.sleep(10)

    async with upstream(hang) as server, asyncio.timeout(3):
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, token_url=f"{server.url}/token"))
        with pytest.raises(ProviderFailed, match="no_access_token"):
            place = candidate("vertex_ai", CLAUDE, base_url=server.url, **CONFIG)
            await ask(call(), place, secret=KEY_SECRET)


async def test_the_number_of_cached_tokens_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(tokens, "MAX_TOKENS", 3)
    cache = TokenCache("test", "no_access_token")
    loaded: list[int] = []

    async def fetch(number: int) -> None:
        async def load() -> AccessToken:
            loaded.append(number)
            return AccessToken("t", renewal.time.time() + 3600)

        await cache.bearer(None, number, load, "p")._token.get(load)  # type: ignore[arg-type]

    for number in (1, 2, 3, 1, 4, 1, 2):
        await fetch(number)
    assert loaded == [1, 2, 3, 4, 2]


@pytest.mark.parametrize(
    ("body", "expires_at"),
    [
        (b'{"access_token": "t", "expires_in": 100}', 1100.0),
        (b'{"access_token": "t", "expires_in": "100"}', 1100.0),
        (b'{"access_token": "t", "expires_in": "100", "expires_on": "1234"}', 1234.0),
        (b'{"access_token": "t"}', 1000.0 + tokens.DEFAULT_LIFETIME_SECONDS),
    ],
)
def test_the_lifetime_of_a_token(body, expires_at) -> None:
    assert read_token(body, 1000.0) == AccessToken("t", expires_at)


def test_a_token_is_not_in_its_repr() -> None:
    assert "secret" not in repr(AccessToken("secret", 1.0))
    with pytest.raises(NotAvailable):
        read_token(b"[]", 0)
