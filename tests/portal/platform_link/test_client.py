"""Calls from the portal to the platform: timeouts, large responses, and the text of refusals."""

import asyncio
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.portal.platform_link.client import PlatformClient, PortalPlatformRefusal, PortalPlatformUnavailable
from gatehouse.portal.settings import PortalSettings


async def result_for(answer: Any, *, status: int = 200, after: float = 0.0, **how: Any) -> Any:
    """Returns the result of a call for this response of the platform."""

    async def behave(connection: Connection) -> None:
        if "/oauth/token" in connection.head:
            await connection.answer(b'{"access_token": "t", "expires_in": 3600}')
            return
        await asyncio.sleep(after)
        await connection.answer(msgspec.json.encode(answer), status=status)

    async with upstream(behave) as far:
        settings = PortalSettings.from_environment(
            {"PLATFORM_URL": far.url, "PLATFORM_CLIENT_ID": str(uuid4()), "PLATFORM_CLIENT_SECRET": "s" * 32}
        )
        outbound = AiohttpOutbound(guard=EgressGuard())
        try:
            return await PlatformClient(settings, outbound).call("POST", "/x", {}, **how)
        finally:
            await outbound.close()


async def test_a_call_has_the_timeout_of_its_caller() -> None:
    assert await result_for({}, after=0.6, timeout_seconds=5) == {}
    with pytest.raises(PortalPlatformUnavailable, match="timeout"):
        await result_for({}, after=0.6, timeout_seconds=0.2)


async def test_an_answer_about_thousands_of_records_is_read() -> None:
    result = await result_for([{"name": "n" * 250}] * 10_000)
    assert len(result) == 10_000


async def test_fields_that_are_refused_are_named_in_words() -> None:
    faults = [{"loc": ["body", "config", "version"], "msg": "must be 1.0"}, {"loc": ["body"], "msg": "no"}]
    with pytest.raises(PortalPlatformRefusal) as refused:
        await result_for({"detail": faults}, status=422)
    assert refused.value.reason == "config.version: must be 1.0; : no"
