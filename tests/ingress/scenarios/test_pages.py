"""Model calls of pages in browsers: Gatehouse's own protocol answers them, unless `CORS_ORIGINS` is set."""

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.wire import connected

from gatehouse.ingress.http1.connection import ClientConnection

PAGE = "https://page.example.com"


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests that were passed to uvicorn."""
    paths: list[str] = []
    hand_on = ClientConnection._forward

    def noted(self: ClientConnection, head) -> None:
        paths.append(head.path)
        hand_on(self, head)

    monkeypatch.setattr(ClientConnection, "_forward", noted)
    return paths


async def response_head(running: RunningPlatform, key: str) -> str:
    running.ingress = "lean"
    async with running.listening() as url, connected(url, key) as wire:
        await wire.send("GET", "/v1/models", more=f"Origin: {PAGE}\r\n")
        head, _ = await wire.answer()
        await wire.send("GET", "/v1/models", more="Origin: https://other.example.com\r\n")
        second_head, _ = await wire.answer()
    assert head.startswith("HTTP/1.1 200 ")
    assert "access-control-allow-origin" not in second_head.lower()
    return head.lower()


async def test_without_cors_origins_the_own_protocol_answers(
    platform: RunningPlatform, tenant: Tenant, handed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "ingress", "lean")
    head = await response_head(platform, await platform.new_key(tenant.user))
    assert "access-control-allow-origin" not in head
    assert not handed_on


async def test_a_page_of_an_allowed_origin_can_read_the_answer(
    platform: RunningPlatform, tenant: Tenant, handed_on: list[str]
) -> None:
    key = await platform.new_key(tenant.user)
    settings = platform.installed.settings.model_copy(update={"cors_origins": (PAGE,)})
    async with RunningPlatform.start(settings) as running:
        head = await response_head(running, key)
    assert f"access-control-allow-origin: {PAGE}" in head
    assert handed_on == ["/v1/models", "/v1/models"]
