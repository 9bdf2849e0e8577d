"""The lines of the pages in docs/clients whose clients are installed for tests, against a running platform with DLP.

`make agents` runs the lines of all pages."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream
from tools.coding_agents.clients import CLIENTS, Case, Client
from tools.coding_agents.pages import MODELS, Values
from tools.coding_agents.running import Result, run_case, scripted

#: The installed clients, and the format of the provider: for the SDKs the other one, so that calls are converted.
INSTALLED = {"openai-python": "anthropic", "anthropic-python": "openai", "curl": "openai"}
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def tenant(platform: RunningPlatform) -> Tenant:
    return await platform.new_tenant()


def cases() -> Iterator[Any]:
    for name, wire_format in INSTALLED.items():
        for index, case in enumerate(CLIENTS[name].cases):
            yield pytest.param(CLIENTS[name], case, wire_format, id=f"{name}-{index}")


async def run(
    platform: RunningPlatform, tenant: Tenant, url: str, folder: Path, client: Client, case: Case, wire_format: str
) -> Result:
    """Run a case with a provider of its own."""
    key = await platform.new_key(tenant.user)
    name = f"{client.name}-{client.cases.index(case)}-{wire_format}-{tenant.slug}"
    async with upstream(scripted(client)) as provider:
        base_url = f"{provider.url}/v1"
        await platform.add_provider(
            tenant.id, name, "byoe", *MODELS, base_url=base_url, format=wire_format, max_retries=0
        )
        return await run_case(client, case, Values(url, key, name), provider, folder, ENVIRONMENT)


@pytest.mark.parametrize(("client", "case", "wire_format"), cases())
async def test_the_example_of_a_client_page_runs(
    platform: RunningPlatform, tenant: Tenant, url: str, tmp_path: Path, client: Client, case: Case, wire_format: str
) -> None:
    result = await run(platform, tenant, url, tmp_path, client, case, wire_format)
    assert result.faults == (), result.output


async def test_a_case_fails_if_values_are_not_redacted(platform: RunningPlatform, url: str, tmp_path: Path) -> None:
    tenant = await platform.new_tenant()
    rule = {"detector_name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "action_tier": "log_only"}
    (await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule)).raise_for_status()
    await platform.refresh()
    client = CLIENTS["openai-python"]
    result = await run(platform, tenant, url, tmp_path, client, client.cases[0], "openai")
    assert result.faults == (
        "[CREDIT_CARD_1] is not in the output",
        "the model received the card number",
        "the model did not receive [CREDIT_CARD_1]",
    )


async def test_a_case_fails_if_its_program_fails_or_does_not_stream(
    platform: RunningPlatform, url: str, tmp_path: Path
) -> None:
    client, tenant = CLIENTS["curl"], await platform.new_tenant()
    streamed = Case("chat completions", True, ("Connect", "Chat completions"), has_tool=False)
    result = await run(platform, tenant, url, tmp_path, client._replace(cases=(streamed,)), streamed, "openai")
    assert result.faults == ("the answers were not of the expected kind",)
    no_url = Case("chat completions", False, ("Chat completions",), has_tool=False)
    result = await run(platform, tenant, url, tmp_path, client._replace(cases=(no_url,)), no_url, "anthropic")
    assert "the exit status is 1" in result.faults
