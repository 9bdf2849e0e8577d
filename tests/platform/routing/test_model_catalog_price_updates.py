"""Updates of the catalog by `gatehouse prices update`, on a machine that reaches the database."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.tenants.test_prices import Shell
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.routing.model_catalog import known_models
from gatehouse.platform.routing.model_catalog.known_models import parse

ENTRY = """
[openai."{model}"]
usd_per_million_tokens = {{ input = {price}, cached_input = 0.5, output = 8 }}
source_url = "https://vendor.example/prices"
recorded_on = {day}
"""
QUERY = (
    "SELECT model_id, (cost_per_input_token * 1000000)::float8, price_source, price_recorded_on::text"
    " FROM model_configs WHERE tenant_id = %s ORDER BY model_id"
)
CHAT = {"model": "mine/small", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def shell(platform: RunningPlatform) -> Shell:
    return Shell(platform)


async def add_models(platform: RunningPlatform, tenant: Tenant, url: str) -> None:
    """Add the provider `mine` with a model without price and a model with an administrator's price."""
    await platform.add_provider(tenant.id, "mine", "openai_compatible", "own", "small", "strange", base_url=url)
    platform.sql(
        "UPDATE model_configs SET cost_per_input_token = NULL, cost_per_output_token = NULL"
        " WHERE tenant_id = %s AND model_id <> 'own'",
        [tenant.id],
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()


@pytest.fixture
def file(fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with prices of the fake provider's models. The fake provider is the vendor `openai`."""
    monkeypatch.setitem(known_models._VENDOR_BY_ORIGIN, fake.url, "openai")
    path = tmp_path / "prices.toml"
    path.write_text(
        ENTRY.format(model="small", price=2, day="2026-11-20") + ENTRY.format(model="own", price=7, day="2026-11-20")
    )
    return path


async def test_a_file_updates_prices_that_no_administrator_set(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, shell: Shell, fake: Any, file: Path
) -> None:
    for organization in (tenant, other_tenant):
        await add_models(platform, organization, fake.url + "/v1")
    before = [("own", 1.0, None, None), ("small", None, None, None), ("strange", None, None, None)]
    assert platform.sql(QUERY, [tenant.id]) == before
    assert "x-cost-usd" not in (await tenant.user.client.post("/v1/chat/completions", json=CHAT)).headers

    tried = await shell.run("update", "-f", str(file), "--tenant", tenant.slug, "--dry-run")
    assert tried.exit_code == 0, tried.output
    lines = [line.split("  ") for line in tried.output.splitlines()]
    (row,) = [[cell.strip() for cell in line if cell] for line in lines if line[0] == tenant.slug]
    assert row == [tenant.slug, "mine/small", "- -> 2", "- -> 8", "- -> 0.5", "-", "2026-11-20", "-"]
    assert "nothing is stored" in tried.output
    assert platform.sql(QUERY, [tenant.id]) == before
    assert await platform.audit(tenant, "model_config.prices_updated") == []

    done = await shell.run("update", "-f", str(file), "--tenant", tenant.slug)
    assert (done.exit_code, done.output.splitlines()[-1]) == (
        0, "Models updated: 1. Prices are in USD per million tokens.",
    )  # fmt: skip
    assert platform.sql(QUERY, [tenant.id]) == [
        ("own", 1.0, None, None), ("small", 2.0, "price_file", "2026-11-20"), ("strange", None, None, None),
    ]  # fmt: skip
    # The running worker knows the price.
    assert "x-cost-usd" in (await tenant.user.client.post("/v1/chat/completions", json=CHAT)).headers
    (event,) = await platform.audit(tenant, "model_config.prices_updated")
    assert (event["actor_type"], event["details"]["source"], event["details"]["updated"]) == ("system", "price_file", 1)
    assert list(event["details"]["models"]) == ["mine/small"]
    assert platform.breaks(tenant) == []
    assert platform.sql(QUERY, [other_tenant.id]) == before

    again = await shell.run("update", "-f", str(file), "--tenant", tenant.slug)
    assert again.output == "Models updated: 0. Prices are in USD per million tokens.\n"
    assert len(await platform.audit(tenant, "model_config.prices_updated")) == 1


async def test_all_organizations_and_newer_files(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, shell: Shell, fake: Any, file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for organization in (tenant, other_tenant):
        await add_models(platform, organization, fake.url + "/v1")
    done = await shell.run("update", "-f", str(file), "--all")
    assert done.exit_code == 0, done.output
    for organization in (tenant, other_tenant):
        assert platform.sql(QUERY, [organization.id])[1] == ("small", 2.0, "price_file", "2026-11-20")
    file.write_text(ENTRY.format(model="small", price=3, day="2026-11-21"))
    changed = await shell.run("update", "-f", str(file), "--tenant", tenant.slug)
    assert "2 -> 3" in changed.output
    assert platform.sql(QUERY, [tenant.id])[1] == ("small", 3.0, "price_file", "2026-11-21")
    # The data of this version does not replace prices of a file, and fills those that are missing.
    data = ENTRY.format(model="small", price=9, day="2026-11-22") + ENTRY.format(
        model="strange", price=4, day="2026-11-22"
    )
    monkeypatch.setattr(known_models, "built_in", lambda: parse(data))
    assert (await shell.run("update", "--tenant", tenant.slug)).exit_code == 0
    assert platform.sql(QUERY, [tenant.id]) == [
        ("own", 1.0, None, None), ("small", 3.0, "price_file", "2026-11-21"),
        ("strange", 4.0, "known_models", "2026-11-22"),
    ]  # fmt: skip


LIMITS = (
    "SELECT model_id, context_window, max_output_tokens, capabilities FROM model_configs WHERE tenant_id = %s"
    " ORDER BY model_id"
)
LIMITS_ENTRY = """
[openai.{model}]
context_window = {window}
max_output_tokens = 500
capabilities = {{ vision = true, function_calling = false }}
source_url = "https://vendor.example/specification"
recorded_on = 2026-11-20
"""


async def test_a_file_sets_unknown_limits_and_capabilities_and_lists_those_that_stay(
    platform: RunningPlatform, tenant: Tenant, shell: Shell, fake: Any, file: Path
) -> None:
    await add_models(platform, tenant, fake.url + "/v1")
    platform.sql(
        "UPDATE model_configs SET context_window = 7000, max_output_tokens = NULL,"
        """ capabilities = '{"vision": false, "max_context_window": 7000}' WHERE tenant_id = %s AND model_id = 'own'""",
        [tenant.id],
    )
    platform.sql(
        "UPDATE model_configs SET context_window = NULL, max_output_tokens = NULL,"
        """ capabilities = '{"streaming": true}' WHERE tenant_id = %s AND model_id <> 'own'""",
        [tenant.id],
    )
    before = platform.sql(LIMITS, [tenant.id])
    file.write_text(LIMITS_ENTRY.format(model="own", window=9000) + LIMITS_ENTRY.format(model="small", window=8000))

    command = ("update", "-f", str(file), "--tenant", tenant.slug)
    tried = await shell.run(*command, "--dry-run")
    assert "context_window: - -> 8000, max_output_tokens: - -> 500, function_calling: - -> false" in tried.output
    assert platform.sql(LIMITS, [tenant.id]) == before

    done = await shell.run(*command)
    assert done.exit_code == 0, done.output
    assert platform.sql(LIMITS, [tenant.id]) == [
        ("own", 7000, 500, {"vision": False, "function_calling": False, "max_context_window": 7000}),
        ("small", 8000, 500,
         {"streaming": True, "vision": True, "function_calling": False, "max_context_window": 8000}),
        before[2],
    ]  # fmt: skip
    kept = [line.split() for line in done.output.splitlines() if line.startswith(tenant.slug) and "->" not in line]
    assert kept == [
        [tenant.slug, "mine/own", "context_window", "7000", "9000"],
        [tenant.slug, "mine/own", "vision", "false", "true"],
    ]
    assert platform.sql(QUERY, [tenant.id])[:2] == [("own", 1.0, None, None), ("small", None, None, None)]
    (event,) = await platform.audit(tenant, "model_config.prices_updated")
    assert event["details"]["models"] == {
        "mine/own": {"max_output_tokens": 500, "function_calling": False},
        "mine/small": {"context_window": 8000, "max_output_tokens": 500, "function_calling": False, "vision": True},
    }
    again = await shell.run(*command)
    assert again.output.endswith("Models updated: 0. Prices are in USD per million tokens.\n")
    assert "mine/own" in again.output


async def test_a_file_replaces_limits_and_capabilities_of_the_data_and_the_data_none_of_a_file(
    platform: RunningPlatform, tenant: Tenant, shell: Shell, fake: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_models(platform, tenant, fake.url + "/v1")
    platform.sql("UPDATE model_configs SET context_window = NULL WHERE tenant_id = %s", [tenant.id])
    data = LIMITS_ENTRY.format(model="small", window=9000)
    monkeypatch.setattr(known_models, "built_in", lambda: parse(data))
    assert (await shell.run("update", "--tenant", tenant.slug)).exit_code == 0
    assert platform.sql(LIMITS, [tenant.id])[1][1] == 9000
    file.write_text(LIMITS_ENTRY.format(model="small", window=8000).replace("vision = true", "vision = false"))
    assert (await shell.run("update", "-f", str(file), "--tenant", tenant.slug)).exit_code == 0
    (small,) = [row for row in platform.sql(LIMITS, [tenant.id]) if row[0] == "small"]
    assert (small[1], small[3]["vision"]) == (8000, False)
    unchanged = await shell.run("update", "--tenant", tenant.slug)
    assert unchanged.output == "Models updated: 0. Prices are in USD per million tokens.\n"
    assert [row for row in platform.sql(LIMITS, [tenant.id]) if row[0] == "small"] == [small]
