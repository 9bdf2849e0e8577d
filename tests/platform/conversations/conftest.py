"""An organization with conversations, and functions to read what is stored."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx2
import msgspec
import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Behave, Connection

BASE = "/api/conversations"
CARD = "4242 4242 4242 4242"

#: Creates a conversation of the client's user and returns its path.
Begin = Callable[..., Awaitable[str]]


@pytest.fixture
async def tenant_with_models(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    """An organization with some of the sandbox's models. Titles are not generated."""
    models = ("echo", "status-503", "stream-50", "cut", "slow-200ms")
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *models, max_retries=0)
    await tenant.admin.client.put("/api/admin/config/auto_title_enabled", json={"value": "false"})
    return tenant


@pytest.fixture
async def begin(tenant_with_models: Tenant) -> Begin:
    async def begin(client: httpx2.AsyncClient | None = None, **body: Any) -> str:
        client = client or tenant_with_models.user.client
        answer = await client.post(BASE, json={"model": "sandbox/echo", **body})
        assert answer.status_code == 201, answer.text
        return f"{BASE}/{answer.json()['id']}"

    return begin


async def messages_of(client: httpx2.AsyncClient, path: str) -> list[dict[str, Any]]:
    """Return the messages of a conversation."""
    answer = await client.get(f"{path}/messages")
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


def contents(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


async def add_dlp_rule(platform: RunningPlatform, tenant: Tenant, action: str = "redact", **config: Any) -> None:
    """Create a rule about card numbers."""
    rule = {
        "detector_name": "cards", "detector_type": "regex", "entity_type": "credit_card", "action_tier": action,
        "config_json": config,
    }  # fmt: skip
    assert (await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule)).status_code == 201
    await platform.refresh()


async def conversation_with_provider(platform: RunningPlatform, tenant_with_models: Tenant, url: str) -> str:
    """Create a conversation of the user with a model of a provider that the test controls."""
    await platform.add_provider(tenant_with_models.id, "own", "openai_compatible", "m", base_url=url, max_retries=0)
    made = await tenant_with_models.user.client.post(BASE, json={"model": "own/m"})
    return f"{BASE}/{made.json()['id']}"


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return msgspec.json.encode({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def answering(*texts: str) -> Behave:
    """Behave like a provider that answers with the texts in order, and then always with the last one."""
    left = list(texts)

    async def behave(connection: Connection) -> None:
        await connection.answer(completion(left.pop(0) if len(left) > 1 else left[0]))

    return behave


def chunk(text: str) -> bytes:
    """A chunk of a stream."""
    body = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def stored(platform: RunningPlatform, tenant_id: UUID) -> str:
    """Return everything that the database contains of the organization's conversations."""
    tables = ("conversations", "conversation_messages", "share_links")
    return "\n".join(
        str(row)
        for table in tables
        for row in platform.sql(f"SELECT row_to_json(t)::text FROM {table} t WHERE tenant_id = %s", [tenant_id])
    )
