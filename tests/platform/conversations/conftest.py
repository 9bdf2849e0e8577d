"""An organization that can chat, and what a test needs to look at what is kept."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/conversations"

#: Begins a conversation and gives its path; whose, by the client.
Begin = Callable[..., Awaitable[str]]


@pytest.fixture
async def talking(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    """With a few of the sandbox's models, and no titles made behind a test's back."""
    models = ("echo", "status-503", "stream-50", "cut", "slow-200ms")
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *models, max_retries=0)
    await tenant.admin.client.put("/api/admin/config/auto_title_enabled", json={"value": "false"})
    return tenant


@pytest.fixture
async def begin(talking: Tenant) -> Begin:
    async def begin(client: httpx2.AsyncClient | None = None, **body: Any) -> str:
        client = client or talking.user.client
        answer = await client.post(BASE, json={"model": "sandbox/echo", **body})
        assert answer.status_code == 201, answer.text
        return f"{BASE}/{answer.json()['id']}"

    return begin


async def said(client: httpx2.AsyncClient, path: str) -> list[dict[str, Any]]:
    """The messages of a conversation."""
    answer = await client.get(f"{path}/messages")
    assert answer.status_code == 200, answer.text
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


def contents(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


async def redacting(platform: RunningPlatform, tenant: Tenant, action: str = "redact", **config: Any) -> None:
    """A rule about card numbers."""
    rule = {
        "detector_name": "cards", "detector_type": "regex", "entity_type": "credit_card", "action_tier": action,
        "config_json": config,
    }  # fmt: skip
    assert (await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule)).status_code == 201
    await platform.refresh()


def stored(platform: RunningPlatform, tenant_id: UUID) -> str:
    """Everything of the organization's conversations, as the database holds it."""
    tables = ("conversations", "conversation_messages", "share_links")
    return "\n".join(
        str(row)
        for table in tables
        for row in platform.sql(f"SELECT row_to_json(t)::text FROM {table} t WHERE tenant_id = %s", [tenant_id])
    )
