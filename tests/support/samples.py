"""Samples of an organization's requests."""

import asyncio
from typing import Any

import httpx2
from tests.support.journal import Journal
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.engine.stages.calls import sampling

SETTING = "/api/v1/admin/org/dlp-sampling"
SAMPLES = "/api/admin/dlp-rules/samples"


async def sample_every_call(platform: RunningPlatform, tenant: Tenant, *models: str) -> None:
    """Give the organization a provider `sandbox`, and store a sample of every call."""
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *(models or ("echo",)))
    assert (await tenant.admin.client.put(SETTING, json={"share": 1})).status_code == 200


async def chat(person: Person, *texts: str, **more: Any) -> httpx2.Response:
    messages = [{"role": "user", "content": text} for text in texts]
    body = {"model": "sandbox/echo", "messages": messages, **more}
    return await person.client.post("/v1/chat/completions", json=body)


async def drained(platform: RunningPlatform) -> None:
    """Wait until all samples are stored."""
    await asyncio.gather(*sampling.RUNNING)
    drain = await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()
    assert drain.status.rejected == 0


async def kept(platform: RunningPlatform, tenant: Tenant, *texts: str, **more: Any) -> str:
    """Store a sample of a call with these texts and return its id."""
    await chat(tenant.user, *texts, **more)
    await drained(platform)
    sample_id: str = (await tenant.admin.client.get(SAMPLES)).json()["samples"][0]["id"]
    return sample_id


async def labelled(tenant: Tenant, sample_id: str, **labels: Any) -> httpx2.Response:
    return await tenant.admin.client.put(f"{SAMPLES}/{sample_id}/labels", json=labels)
