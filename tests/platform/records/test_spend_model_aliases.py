"""GET /api/admin/usage/spend/model-aliases (docs/records.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

SPEND = "/api/admin/usage/spend/model-aliases"
FAILED: dict[str, Any] = {"outcome": "error", "status": 502, "cost_usd": None}


async def spend(tenant: Tenant, **params: Any) -> dict[str, Any]:
    answer = await tenant.auditor.client.get(SPEND, params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


@pytest.fixture
async def noon(tenant: Tenant, other_tenant: Tenant, journal: Journal) -> datetime:
    """Requests to two aliases, at a noon and on the day before. Returns this noon."""
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=2)
    at = {"timestamp": noon.timestamp(), "latency_ms": 0}
    before = {**at, "timestamp": (noon - timedelta(days=1)).timestamp()}
    west = {**at, "model_alias": "fast", "provider": "west"}
    await journal.append(
        outcome(tenant.id, **at, cost_usd="9"),
        outcome(tenant.id, **at, model_alias="fast", cost_usd="1"),
        *(outcome(tenant.id, **west, cost_usd="0.5") for _ in range(2)),
        outcome(tenant.id, **west, shadow=True, cost_usd="0.125"),
        outcome(tenant.id, **west, **FAILED),
        outcome(tenant.id, **at, model_alias="fast", provider=None, model_id=None, **FAILED),
        outcome(tenant.id, **before, model_alias="Dear", cost_usd="4"),
        outcome(other_tenant.id, **at, model_alias="fast", cost_usd="50"),
    )
    await journal.drain()
    return noon


async def test_spend_is_summed_up_by_alias_and_by_deployment(tenant: Tenant, noon: datetime) -> None:
    aliases = await spend(tenant)
    assert {name: aliases[name] for name in ("by", "total", "page", "page_size")} == {
        "by": "model_alias", "total": 2, "page": 1, "page_size": 50,
    }  # fmt: skip
    assert aliases["sum"] == {"requests": 7, "errors": 2, "cost_usd": 6.125}
    dear, fast = aliases["items"]
    assert (dear["model_alias"], dear["requests"], dear["cost_usd"]) == ("Dear", 1, 4.0)
    assert fast == {
        "model_alias": "fast", "provider": None, "model_id": None, "shadow": False, "requests": 6, "errors": 2,
        "cost_usd": 2.125,
    }  # fmt: skip
    deployments = await spend(tenant, by="deployment", model_alias="fast", sort="-requests")
    assert [
        (item["provider"], item["shadow"], item["requests"], item["errors"], item["cost_usd"])
        for item in deployments["items"]
    ] == [
        ("west", False, 3, 1, 1.0), ("west", True, 1, 0, 0.125), ("sandbox", False, 1, 0, 1.0), (None, False, 1, 1, 0),
    ]  # fmt: skip
    assert deployments["items"][0]["model_id"] == "echo"
    assert deployments["sum"]["cost_usd"] == 2.125


async def test_spend_is_restricted_to_days_and_an_alias(tenant: Tenant, noon: datetime) -> None:
    day = str(noon.date())
    assert [item["model_alias"] for item in (await spend(tenant, **{"from": day, "to": day}))["items"]] == ["fast"]
    assert (await spend(tenant, to=str((noon - timedelta(days=1)).date())))["sum"]["cost_usd"] == 4
    assert (await spend(tenant, model_alias="Dear"))["total"] == 1
    nothing = await spend(tenant, model_alias="none")
    assert (nothing["items"], nothing["sum"]) == ([], {"requests": 0, "errors": 0, "cost_usd": 0})


async def test_pages_are_sorted_and_contain_every_alias_once(tenant: Tenant, journal: Journal) -> None:
    """More aliases than fit on a page, of which the one with the fewest requests costs most."""
    at = datetime.now(UTC).timestamp()
    names = [f"a{number:02}" for number in range(52)]
    await journal.append(
        *(outcome(tenant.id, timestamp=at, model_alias=name, cost_usd="1") for name in [*names, *names[1:]]),
        outcome(tenant.id, timestamp=at, model_alias="a00", cost_usd="5"),
        outcome(tenant.id, timestamp=at, model_alias="a03", **FAILED),
    )
    await journal.drain()
    first = await spend(tenant)
    assert (first["items"][0]["model_alias"], first["total"], len(first["items"])) == ("a00", 52, 50)
    assert first["sum"]["cost_usd"] == 108
    assert first["items"][0]["cost_usd"] == 6
    for sort in ("cost_usd", "requests", "errors", "name"):
        ascending = [item["model_alias"] for item in (await spend(tenant, sort=sort, page_size=200))["items"]]
        descending = [item["model_alias"] for item in (await spend(tenant, sort=f"-{sort}", page_size=200))["items"]]
        assert descending == ascending[::-1], sort
        pages = [(await spend(tenant, sort=sort, page=page, page_size=30))["items"] for page in (1, 2, 3)]
        assert [item["model_alias"] for items in pages for item in items] == ascending, sort
    assert (await spend(tenant, sort="-errors"))["items"][0]["model_alias"] == "a03"
    beyond = await spend(tenant, page=3)
    assert (beyond["items"], beyond["total"], beyond["sum"]["requests"]) == ([], 52, 105)


async def test_only_those_who_see_the_organization_read_its_spend(platform: RunningPlatform, tenant: Tenant) -> None:
    reader = await platform.new_m2m(tenant.id, "admin:read")
    for client, status in [(platform.anonymous, 401), (tenant.user.client, 403), (reader, 200)]:
        assert (await client.get(SPEND)).status_code == status


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("by", "user"),
        ("sort", "tokens"),
        ("from", "yesterday"),
        ("to", "2026-02-30"),
        ("page", "0"),
        ("page_size", "201"),
    ],
)
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.admin.client.get(SPEND, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", name]
