"""An organization whose users may call the sandbox, and the stock clients of its users."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest
from tests.support.journal import Journal
from tests.support.platform import Person, RunningPlatform, Tenant

TIMEOUT_SECONDS = 30.0
MODELS = ("echo", "embed", "slow-200ms", "status-503")

#: Uploads lines and creates a batch of them.
Create = Callable[..., Awaitable[Any]]


def line(custom_id: str, content: str = "Hello", *, model: str = "sandbox/echo", **body: Any) -> dict[str, Any]:
    """Return a line of a file of chat completions."""
    body = {"model": model, "messages": [{"role": "user", "content": content}], **body}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def jsonl(lines: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in lines)


def parsed(content: bytes) -> dict[str, Any]:
    """Return the lines of a file of results by their custom ids."""
    return {entry["custom_id"]: entry for entry in map(json.loads, content.splitlines())}


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
async def owner(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *MODELS, max_retries=0)
    return tenant


@pytest.fixture
async def client(platform: RunningPlatform, url: str, owner: Tenant) -> AsyncIterator[openai.AsyncOpenAI]:
    key = await platform.new_key(owner.user)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        yield client


@pytest.fixture
async def claude(platform: RunningPlatform, url: str, owner: Tenant) -> AsyncIterator[anthropic.AsyncAnthropic]:
    key = await platform.new_key(owner.user)
    async with anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as client:
        yield client


async def create(client: openai.AsyncOpenAI, lines: Sequence[Any], **arguments: Any) -> Any:
    file = await client.files.create(file=("calls.jsonl", jsonl(lines)), purpose="batch")
    return await client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", **arguments
    )


async def ended(client: openai.AsyncOpenAI, batch_id: str) -> Any:
    """Return the batch once it has ended."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            batch = await client.batches.retrieve(batch_id)
            if batch.status in {"completed", "failed", "expired", "cancelled"}:
                return batch
            await asyncio.sleep(0.1)


async def results(client: openai.AsyncOpenAI, file_id: str | None) -> dict[str, Any]:
    assert file_id is not None
    return parsed((await client.files.content(file_id)).content)


@asynccontextmanager
async def occupied(platform: RunningPlatform) -> AsyncIterator[None]:
    """Let no line of a batch start in the meantime."""
    capacity = platform.host.batches.capacity
    async with AsyncExitStack() as stack:
        for _ in range(capacity.concurrency):
            await stack.enter_async_context(capacity.slots)
        yield


async def records(platform: RunningPlatform, tenant: Tenant) -> list[dict[str, Any]]:
    """Return the organization's usage records, once the journal is stored."""
    settings = platform.installed.settings
    await Journal(platform.installed.url, settings.gatehouse_home / "journal").drain()
    columns = ("request_id", "status", "input_tokens", "cost_usd")
    rows = platform.sql(
        f"SELECT {', '.join(columns)} FROM usage_records WHERE tenant_id = %s ORDER BY id",
        [tenant.id],
    )
    return [dict(zip(columns, row, strict=True)) for row in rows]


async def add_budget(tenant: Tenant, **limits: Any) -> None:
    body = {"scope_type": "tenant", "period": "month", "action": "block", **limits}
    answer = await tenant.admin.client.post("/api/admin/budgets", json=body)
    assert answer.status_code == 201, answer.text


async def deactivate(tenant: Tenant, person: Person) -> None:
    answer = await tenant.admin.client.patch(f"/api/admin/users/{person.id}", json={"is_active": False})
    assert answer.is_success, answer.text
