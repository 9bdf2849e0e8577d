from collections.abc import Callable
from uuid import uuid4

import msgspec
import pytest

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.providers import Reply, call_provider
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.policy.catalog import Candidate, ModelRecord, ProviderConfig, ProviderRecord

Ask = Callable[..., Reply]


def candidate(kind: str, model: str = "the-model", **config) -> Candidate:
    provider = ProviderRecord(id="p", name="P", kind=kind, config=ProviderConfig(**config))
    return Candidate(provider, ModelRecord(id=uuid4(), provider="p", model_id=model))


def call(dialect: str = "openai_chat", **changes) -> ModelCall:
    body = {
        "model": "p/the-model",
        "messages": [{"role": "user", "content": "hello big world"}],
        "input": "hello",
        "max_tokens": 500,
    }
    return DIALECTS[dialect].decode(msgspec.json.encode({**body, **changes}))


@pytest.fixture(scope="session")
async def outbound():
    carrier = AiohttpOutbound(16)
    yield carrier
    await carrier.close()


@pytest.fixture
def ask(outbound):
    """Return a function that calls a provider: `await ask(call(...), candidate(...))`."""

    async def call_once(request: ModelCall, place: Candidate, limit: int = 1_000_000, secret=None, **options) -> Reply:
        secret = {"api_key": "sk-very-secret-key"} if secret is None else secret
        return await call_provider(
            request, place, secret=secret, outbound=outbound, max_response_bytes=limit, **options
        )

    return call_once


async def everything(reply: Reply) -> bytes:
    assert reply.events is not None
    try:
        return b"".join([block async for block in reply.events])
    finally:
        await reply.close()
