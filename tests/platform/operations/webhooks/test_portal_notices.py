"""Notices to the portal about dead letters (docs/portal.md, "Notifications")."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.platform.operations.webhooks.conftest import Hooks
from tests.support.upstream import Connection, Upstream, upstream

from gatehouse.foundation import jwt
from gatehouse.foundation.jwt import SigningKey
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.portal_notices import sending
from gatehouse.platform.operations.portal_notices.sending import NoticesNotAccepted
from gatehouse.platform.operations.webhooks import delivering


def with_portal(tools: Tools, portal: str | None) -> Tools:
    settings = tools.settings.model_copy(update={"portal_public_url": portal})
    return msgspec.structs.replace(tools, settings=settings)


@asynccontextmanager
async def portal_that_answers(*statuses: int) -> AsyncIterator[Upstream]:
    """Run a portal that answers with these statuses, and with 200 afterwards."""
    left = list(statuses)

    async def behave(connection: Connection) -> None:
        await connection.answer(b"{}", status=left.pop(0) if left else 200)

    async with upstream(behave) as portal:
        yield portal


async def make_dead_letters(hooks: Hooks, tools: Tools, *webhook_ids: str) -> None:
    """Create a dead letter for each webhook."""
    for webhook_id in webhook_ids:
        hooks.platform.sql(
            "INSERT INTO webhook_deliveries (id, tenant_id, webhook_id, event_type, payload, status, next_attempt_at,"
            " dead_at) VALUES (gen_random_uuid(), %s, %s, 'new_conversation', '{}', 'failed', NULL, now())",
            [hooks.tenant.id, webhook_id],
        )
    await delivering.mark_dead_letters(tools)


def waiting(hooks: Hooks) -> set[UUID]:
    return {
        row
        for (row,) in hooks.platform.sql(
            "SELECT subject_id FROM portal_notices WHERE tenant_id = %s", [hooks.tenant.id]
        )
    }


def notices_of(connection: Connection) -> list[dict[str, Any]]:
    notices: list[dict[str, Any]] = json.loads(connection.body)["notices"]
    return sorted(notices, key=lambda item: str(item["subject_id"]))


@pytest.fixture(autouse=True)
def nothing_waits(hooks: Hooks) -> None:
    hooks.platform.sql("DELETE FROM portal_notices")


async def test_each_webhook_with_dead_letters_is_reported_once(hooks: Hooks, tools: Tools) -> None:
    one, two = sorted([await hooks.new(), await hooks.new()])
    async with portal_that_answers() as portal:
        tools = with_portal(tools, portal.url + "/")
        await make_dead_letters(hooks, tools, one, one, two)
        await sending.send_due(tools)
        await sending.send_due(tools)
        (request,) = portal.requests
    assert request.head.startswith("POST /v1/platform-notices ")
    first, second = notices_of(request)
    assert (first["type"], first["tenant_id"], first["subject_id"]) == ("dead_letter", str(hooks.tenant.id), one)
    assert second["subject_id"] == two
    assert first["message"].startswith('Deliveries of the webhook "mine" have failed for good, the last of them at 20')
    assert waiting(hooks) == set()


async def test_the_token_is_valid_only_for_this_portal(hooks: Hooks, tools: Tools) -> None:
    async with portal_that_answers() as portal:
        tools = with_portal(tools, portal.url)
        await make_dead_letters(hooks, tools, await hooks.new())
        await sending.send_due(tools)
        token = portal.requests[0].headers["authorization"].removeprefix("Bearer ")
        keys = (await hooks.platform.anonymous.get("/.well-known/jwks.json")).json()["keys"]
        known = {key["kid"]: SigningKey.from_jwk(key) for key in keys}
        claims = jwt.verify(token, known, issuer=hooks.platform.host.issuer, audience=portal.url)
    assert claims["token_type"] == "platform_notice"
    assert claims["exp"] - claims["iat"] <= 60
    # The platform itself does not accept the token.
    headers = {"Authorization": f"Bearer {token}"}
    assert (await hooks.platform.anonymous.get("/v1/models", headers=headers)).status_code == 401


@pytest.mark.parametrize("status", [401, 404, 422, 500, 503])
async def test_a_refused_notice_is_sent_again_a_minute_later(hooks: Hooks, tools: Tools, status: int) -> None:
    webhook_id = await hooks.new()
    async with portal_that_answers(status) as portal:
        tools = with_portal(tools, portal.url)
        await make_dead_letters(hooks, tools, webhook_id)
        with pytest.raises(NoticesNotAccepted, match=str(status)):
            await sending.send_due(tools)
        await sending.send_due(tools)
        assert (len(portal.requests), waiting(hooks)) == (1, {UUID(webhook_id)})
        ((pause,),) = hooks.platform.sql("SELECT due_at - now() FROM portal_notices")
        assert 50 < pause.total_seconds() <= 60
        hooks.platform.sql("UPDATE portal_notices SET due_at = now()")
        await sending.send_due(tools)
        assert (len(portal.requests), waiting(hooks)) == (2, set())


async def test_a_notice_is_sent_once_the_portal_is_back(hooks: Hooks, tools: Tools) -> None:
    webhook_id = await hooks.new()
    tools = with_portal(tools, "http://127.0.0.1:9")
    await make_dead_letters(hooks, tools, webhook_id)
    with pytest.raises(NoticesNotAccepted, match="connect_failed"):
        await sending.send_due(tools)
    assert waiting(hooks) == {UUID(webhook_id)}


async def test_dead_letters_during_a_notice_are_reported_too(hooks: Hooks, tools: Tools) -> None:
    webhook_id = await hooks.new()
    again = [True]

    async def behave(connection: Connection) -> None:
        if again:
            again.pop()
            await make_dead_letters(hooks, tools, webhook_id)
        await connection.answer(b"{}")

    async with upstream(behave) as portal:
        tools = with_portal(tools, portal.url)
        await make_dead_letters(hooks, tools, webhook_id)
        await sending.send_due(tools)
        assert [notices_of(request)[0]["subject_id"] for request in portal.requests] == [webhook_id] * 2
    assert waiting(hooks) == set()


async def test_without_a_portal_no_notice_is_stored(hooks: Hooks, tools: Tools) -> None:
    tools = with_portal(tools, None)
    await make_dead_letters(hooks, tools, await hooks.new())
    await sending.send_due(tools)
    assert waiting(hooks) == set()


async def test_an_abandoned_delivery_is_a_dead_letter(
    hooks: Hooks, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await hooks.new()
    monkeypatch.setattr(delivering, "MAX_WAITING_DELIVERIES_PER_WEBHOOK", 1)
    await hooks.announce({"n": 1}, {"n": 2}, {"n": 3})
    await hooks.dispatch()
    await delivering.prune(with_portal(tools, "https://portal.test"))
    assert waiting(hooks) == {UUID(webhook_id)}
