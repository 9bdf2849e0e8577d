"""The permitted addresses of providers, by `EGRESS_POLICY` and by the egress policy of an organization."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

BYOE = "/api/admin/providers/byoe"
MODEL = {
    "model_id": "m", "display_name": "M", "context_window": 8_000, "input_cost_per_1k": 1, "output_cost_per_1k": 1,
}  # fmt: skip


def endpoint(url: str, **changes: Any) -> dict[str, Any]:
    return {"id": "own", "name": "Own", "base_url": url, "format": "openai", "models": [MODEL], **changes}


async def narrow(platform: RunningPlatform, tenant: Tenant, policy: str | None) -> dict[str, Any]:
    operator = await platform.new_m2m(None, "admin:write")
    path = f"/v1/platform/tenants/{tenant.id}/entitlements"
    answer = await operator.patch(path, json={"egress_policy": policy})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def chat(tenant: Tenant) -> tuple[int, Any]:
    body = {"model": "own/m", "messages": [{"role": "user", "content": "hi"}]}
    answer = await tenant.user.client.post("/v1/chat/completions", json=body)
    return answer.status_code, answer.json()


async def test_a_private_address_is_refused_under_the_policy_public(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    assert (await narrow(platform, tenant, "public"))["egress_policy"] == "public"
    admin = tenant.admin.client
    for method, path, body, field in (
        ("POST", BYOE, endpoint("http://10.0.0.1/v1"), "base_url"),
        ("PUT", "/api/admin/providers/mine/credentials", {"base_url": "http://127.0.0.1:9/v1"}, "base_url"),
        ("PUT", "/api/admin/providers/ollama/credentials", {"local_runtime_base_url": "http://10.0.0.1"},
         "local_runtime_base_url"),
        ("PUT", "/api/admin/providers/azure_openai/credentials",
         {"api_key": "k", "hosted_endpoint": "https://10.0.0.1"}, "hosted_endpoint"),
    ):  # fmt: skip
        answer = await admin.request(method, path, json=body)
        assert answer.status_code == 422, answer.text
        assert field in answer.text
        assert "egress policy `public`" in answer.text
        assert "EGRESS_ALLOWLIST" in answer.text
    assert (await admin.post(BYOE, json=endpoint("https://models.example.com/v1"))).status_code == 201
    changed = await admin.patch(f"{BYOE}/own", json={"base_url": "http://10.0.0.1/v1"})
    assert changed.status_code == 422
    assert (await other_tenant.admin.client.post(BYOE, json=endpoint("http://10.0.0.1/v1"))).status_code == 201


async def test_an_address_that_a_later_policy_forbids_is_not_called_and_its_port_is_not_revealed(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    admin = tenant.admin.client
    assert (await admin.post(BYOE, json=endpoint(fake.url + "/v1"))).status_code == 201
    assert (await admin.post(BYOE, json=endpoint("http://127.0.0.1:9/v1", id="closed"))).status_code == 201
    assert (await chat(tenant))[0] == 200
    before = len(fake.requests)
    await narrow(platform, tenant, "public")
    status, failure = await chat(tenant)
    assert status == 502
    assert failure["error"]["attempts"][0]["reason"] == "address_refused"
    answers = [(await admin.post(f"/api/admin/system/check-provider/{item}")).json() for item in ("own", "closed")]
    assert [answer["error"] for answer in answers] == ["address_refused"] * 2
    checks = [(await admin.post(f"/api/admin/providers/{item}/health-check")).json() for item in ("own", "closed")]
    assert len({check["error"] for check in checks}) == 1
    assert "EGRESS_POLICY" in checks[0]["error"]
    assert len(fake.requests) == before
    await narrow(platform, tenant, None)
    assert (await chat(tenant))[0] == 200


@pytest.fixture
def only_public(platform: RunningPlatform) -> Iterator[None]:
    """Apply the restrictions of `EGRESS_POLICY=public`."""
    outbound = platform.host.outbound
    assert isinstance(outbound, LeanOutbound)
    guards = {id(guard): guard for guard in (outbound._guard, platform.host.receivers.guard)}.values()
    for guard in guards:
        guard._policy = "public"
    try:
        yield
    finally:
        for guard in guards:
            guard._policy = "private"


@pytest.mark.usefixtures("only_public")
async def test_the_deployments_policy_holds_for_every_organization(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(BYOE, json=endpoint("http://10.0.0.1/v1"))
    assert answer.status_code == 422
    assert "a private address" in answer.text


async def test_only_operators_restrict_the_addresses_of_an_organization(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    path = f"/v1/platform/tenants/{tenant.id}/entitlements"
    assert (await tenant.admin.client.patch(path, json={"egress_policy": None})).status_code == 403
    operator = await platform.new_m2m(None, "admin:write")
    for bad in ("private", "open", 1):
        assert (await operator.patch(path, json={"egress_policy": bad})).status_code == 422
    missing = f"/v1/platform/tenants/{uuid4()}/entitlements"
    assert (await operator.patch(missing, json={"egress_policy": "public"})).status_code == 404
