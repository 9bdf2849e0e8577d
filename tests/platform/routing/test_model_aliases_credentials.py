"""Deployments of model aliases that name a credential of their provider (docs/deployments.md)."""

from collections import Counter
from typing import Any

import pytest
from tests.platform.routing.conftest import FakeProvider
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import Failed

BASE = "/api/v1/admin/model-aliases"
CREDENTIALS = "/api/admin/providers/mine/credentials"
FIRST: dict[str, Any] = {"provider": "mine", "model_id": "small", "credential": "default"}
SECOND: dict[str, Any] = {"provider": "mine", "model_id": "small", "credential": "second"}
ANY: dict[str, Any] = {"provider": "mine", "model_id": "small"}


@pytest.fixture
async def served(tenant: Tenant, fake: FakeProvider) -> Tenant:
    """An organization whose provider `mine` has the credentials `default` and `second`."""
    await ok(tenant, "PUT", CREDENTIALS, {"base_url": f"{fake.url}/v1", "api_key": "sk-first-4711"})
    await ok(tenant, "POST", CREDENTIALS, {"label": "second", "api_key": "sk-second-4711"})
    await ok(tenant, "POST", "/api/admin/models/catalog/", {"provider": "mine", "model_id": "small"})
    return tenant


async def ok(tenant: Tenant, method: str, path: str, body: Any = None) -> Any:
    answer = await tenant.admin.client.request(method, path, json=body)
    assert answer.status_code in {200, 201, 204}, answer.text
    return answer.json() if answer.content else None


async def create(tenant: Tenant, *deployments: dict[str, Any]) -> dict[str, Any]:
    created: dict[str, Any] = await ok(tenant, "POST", BASE, {"name": "fast", "deployments": deployments})
    return created


async def keys(tenant: Tenant, fake: FakeProvider, count: int) -> Counter[str]:
    """Send requests to the alias. Return the number of requests that the provider received with each key."""
    fake.requests.clear()
    for _ in range(count):
        body = {"model": "fast", "messages": [{"role": "user", "content": "hello"}]}
        answer = await tenant.user.client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
    return Counter(request.headers["authorization"].removeprefix("Bearer sk-") for request in fake.requests)


async def test_each_deployment_uses_its_credential(served: Tenant, fake: FakeProvider) -> None:
    created = await create(served, {**FIRST, "weight": 3}, SECOND)
    assert [deployment["credential"] for deployment in created["deployments"]] == ["default", "second"]
    assert (await served.auditor.client.get(f"{BASE}/{created['id']}")).json() == created
    assert await keys(served, fake, 8) == {"first-4711": 6, "second-4711": 2}
    await ok(served, "PUT", f"{BASE}/{created['id']}", {"deployments": [SECOND]})
    assert await keys(served, fake, 3) == {"second-4711": 3}
    # Without a label, all credentials are used in turn.
    await ok(served, "PUT", f"{BASE}/{created['id']}", {"deployments": [ANY]})
    assert await keys(served, fake, 4) == {"first-4711": 2, "second-4711": 2}


async def test_a_deployment_whose_credential_was_removed_is_left_out(served: Tenant, fake: FakeProvider) -> None:
    await create(served, FIRST, SECOND)
    await ok(served, "PATCH", f"{CREDENTIALS}/default", {"state": "disabled"})
    assert await keys(served, fake, 3) == {"second-4711": 3}
    await ok(served, "PATCH", f"{CREDENTIALS}/default", {"state": "active"})
    await ok(served, "DELETE", f"{CREDENTIALS}/second")
    assert await keys(served, fake, 3) == {"first-4711": 3}


@pytest.mark.parametrize(
    ("deployments", "field"),
    [
        ([{**FIRST, "credential": "third"}], "0.credential"),
        ([{**FIRST, "credential": "Not a label"}], "0.credential"),
        ([{**FIRST, "credential": ""}], "0.credential"),
        ([{**FIRST, "provider": "other", "model_id": "large", "credential": "second"}], "0.credential"),
        ([FIRST, FIRST], "1.credential"),
        ([ANY, FIRST], "1.credential"),
        ([FIRST, ANY], "1.credential"),
        ([ANY, ANY], "1.model_id"),
    ],
)
async def test_a_credential_that_no_deployment_can_have_is_422(
    platform: RunningPlatform, served: Tenant, deployments: list[dict[str, Any]], field: str
) -> None:
    await platform.add_provider(served.id, "other", "sandbox", "large")
    answer = await served.admin.client.post(BASE, json={"name": "fast", "deployments": deployments})
    assert answer.status_code == 422, answer.text
    assert ".".join(map(str, answer.json()["detail"][0]["loc"])) == f"body.deployments.{field}"


async def test_the_credential_of_another_organization_is_unknown(
    platform: RunningPlatform, served: Tenant, other_tenant: Tenant
) -> None:
    await platform.add_provider(other_tenant.id, "mine", "sandbox", "small")
    answer = await other_tenant.admin.client.post(BASE, json={"name": "fast", "deployments": [SECOND]})
    assert (answer.status_code, answer.json()["detail"][0]["loc"][-1]) == (422, "credential")


async def test_a_simulation_names_the_credential_of_each_deployment(served: Tenant) -> None:
    await create(served, {**FIRST, "tier": 1}, SECOND)
    policy = await ok(
        served, "POST", "/api/admin/cost-routing/policies", {"name": "Default", "strategy": "cost_optimized"}
    )
    request = {"model": "fast", "estimated_input_tokens": 10, "estimated_output_tokens": 10}
    body = {"policy_id": policy["policy_id"], "request": request}
    simulated = await ok(served, "POST", "/api/admin/cost-routing/simulate", body)
    assert simulated["selected_model"]["credential"] == "second"
    assert [fallback["credential"] for fallback in simulated["fallback_sequence"]] == ["default"]
    assert [candidate["credential"] for candidate in simulated["candidates"]] == ["second", "default"]


async def test_the_comparison_is_by_credential(platform: RunningPlatform, served: Tenant) -> None:
    created = await create(served, FIRST, SECOND)
    journal = Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal")
    failed = Failed(provider="mine", model_id="small", status=429, reason="rate_limited", credential="default")

    def record(credential: str, latency: float, **fields: Any) -> Any:
        return outcome(
            served.id, model_alias="fast", provider="mine", model_id="small", credential=credential,
            latency_ms=latency, cost_usd="0.01", attempt_ms=1.0, **fields,
        )  # fmt: skip

    await journal.append(record("default", 10.0), record("second", 30.0), record("second", 30.0, attempts=(failed,)))
    await journal.killed()
    await journal.drain()
    path = f"{BASE}/{created['id']}"

    async def compared() -> list[tuple[Any, ...]]:
        body = (await served.auditor.client.get(f"{path}/comparison")).json()
        names = ("credential", "requests", "errors", "latency_median_ms")
        return [tuple(entry[name] for name in names) for entry in body["deployments"]]

    assert await compared() == [("default", 2, 1, 10.0), ("second", 2, 0, 30.0)]
    await ok(served, "PUT", path, {"deployments": [ANY]})
    assert await compared() == [(None, 4, 1, 30.0)]
