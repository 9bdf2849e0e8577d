"""The provider endpoints (docs/providers.md, docs/reference/platform-providers.md)."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.routing.providers.schedule import run_due

BASE = "/api/admin/providers"
KEY = "sk-Vq83-never-to-be-seen-again"
CHAT = {"model": "mine/small", "messages": [{"role": "user", "content": "hi"}]}


async def configure(tenant: Tenant, slug: str, **body: Any) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/{slug}/credentials", json=body)
    assert answer.status_code == 200, answer.text


async def connect(tenant: Tenant, fake: Any, slug: str = "mine") -> None:
    """An OpenAI-compatible provider at the fake, with one model."""
    await configure(tenant, slug, base_url=fake.url + "/v1", api_key=KEY)
    body = {"provider": slug, "model_id": "small", "display_name": "Small"}
    assert (await tenant.admin.client.post("/api/admin/models/catalog/", json=body)).status_code == 201


async def read(tenant: Tenant, slug: str) -> dict[str, Any]:
    answer = await tenant.admin.client.get(f"{BASE}/{slug}")
    assert answer.status_code == 200, answer.text
    provider: dict[str, Any] = answer.json()
    return provider


async def check(tenant: Tenant, slug: str = "mine") -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/{slug}/health-check")
    assert answer.status_code == 200, answer.text
    checked: dict[str, Any] = answer.json()
    return checked


async def test_a_new_organization_has_no_provider(tenant: Tenant) -> None:
    assert (await tenant.admin.client.get(BASE)).json() == {"providers": []}
    missing = await tenant.admin.client.get(f"{BASE}/openai")
    assert (missing.status_code, missing.json()) == (404, {"detail": "Provider not found"})


async def test_credentials_create_the_provider_of_a_known_kind(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/openai/credentials", json={"api_key": KEY})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["provider_id"], body["credentials_configured"]) == ("openai", True)
    assert set(body) == {"provider_id", "credentials_configured", "updated_at"}
    provider = await read(tenant, "openai")
    assert provider == {
        "updated_at": body["updated_at"],
        "id": "openai", "name": "OpenAI", "kind": "openai", "type": "native", "status": "active",
        "enabled": True, "kill_switch_active": False,
        "credentials_configured": True, "last_health_check": None, "health_check_status": "unknown",
        "models_enabled": 0, "config": {"timeout_ms": 30_000, "max_retries": 2},
        "health_check_config": {
            "enabled": True, "interval_seconds": 30, "timeout_ms": 5_000, "failure_threshold": 3,
            "recovery_threshold": 2,
        },
    }  # fmt: skip
    assert (await tenant.auditor.client.get(BASE)).json() == {"providers": [provider]}


async def test_credentials_are_stored_only_sealed(platform: RunningPlatform, tenant: Tenant) -> None:
    answers = [await tenant.admin.client.put(f"{BASE}/anthropic/credentials", json={"api_key": KEY})]
    answers += [await tenant.admin.client.get(path) for path in (BASE, f"{BASE}/anthropic", "/api/providers/health")]
    for answer in answers:
        assert KEY not in answer.text
    tables = platform.sql(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    )
    for (table,) in tables:
        assert platform.sql(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE %s", [f"%{KEY}%"]) == [(0,)], table
    (event,) = await platform.audit(tenant, "provider.credentials_set")
    assert (event["resource_id"], event["details"]) == ("anthropic", {"fields": ["api_key"]})


async def test_credentials_are_in_no_log_and_no_answer_when_the_provider_repeats_them(
    tenant: Tenant, fake: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    await connect(tenant, fake)
    answers = []
    for mode in ("echo_key", "garbage", 401, 500, "cut"):
        fake.mode = mode
        answers.append(await tenant.admin.client.post(f"{BASE}/mine/health-check"))
        answers.append(await tenant.admin.client.post("/api/admin/system/check-provider/mine"))
        answers.append(await tenant.user.client.post("/v1/chat/completions", json=CHAT))
        answers.append(await tenant.admin.client.get("/api/admin/models/catalog/discover"))
    assert all(KEY not in answer.text + str(answer.headers) for answer in answers)
    logged = capfd.readouterr()
    assert KEY not in logged.out + logged.err


async def test_credentials_are_bound_to_their_row(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await configure(tenant, "mine", base_url=fake.url + "/v1", api_key=KEY)
    await configure(tenant, "thief", base_url=fake.url + "/v1")
    platform.sql(
        "UPDATE providers SET sealed_credentials = (SELECT sealed_credentials FROM providers WHERE tenant_id = %s AND"
        " id = 'mine') WHERE tenant_id = %s AND id = 'thief'",
        [tenant.id, tenant.id],
    )
    check_result = await check(tenant, "thief")
    assert (check_result["health_check_status"], fake.requests) == ("unreachable", [])
    assert "master keys" in check_result["error"]


@pytest.mark.parametrize(
    ("slug", "body", "status", "field"),
    [
        ("openai", {}, 400, "api_key"),
        ("openai", {"api_key": ""}, 400, "api_key"),
        ("openai", {"api_key": None}, 400, "api_key"),
        ("ollama", {}, 400, "local_runtime_base_url"),
        ("openai_compatible", {"api_key": "x"}, 400, "base_url"),
        ("openai", {"api_key": 5}, 422, "api_key"),
        ("openai", {"api_key": "sk-a\r\nx-evil: 1"}, 422, "api_key"),
        ("openai", {"api_key": "schlüssel"}, 422, "api_key"),
        ("openai", {"api_key": "x", "cloud_region": "here"}, 422, "cloud_region"),
        ("openai", {"api_key": "x", "surprise": "here"}, 422, "surprise"),
        ("ollama", {"local_runtime_base_url": "ftp://x"}, 422, "local_runtime_base_url"),
        ("ollama", {"local_runtime_base_url": "http://169.254.169.254/"}, 422, "local_runtime_base_url"),
        ("ollama", {"local_runtime_base_url": "http://[fd00:ec2::254]/"}, 422, "local_runtime_base_url"),
        ("own", {"base_url": "http://metadata.google.internal/v1"}, 422, "base_url"),
        ("own", {"base_url": "http://user:pw@host/v1"}, 422, "base_url"),
        ("own", {"base_url": "http://host/v1?x=1"}, 422, "base_url"),
    ],
)
async def test_bad_credentials_name_the_field(
    platform: RunningPlatform, tenant: Tenant, slug: str, body: dict[str, Any], status: int, field: str
) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/{slug}/credentials", json=body)
    assert answer.status_code == status, answer.text
    assert field in answer.text
    assert "evil" not in answer.text
    assert platform.sql("SELECT id FROM providers WHERE tenant_id = %s", [tenant.id]) == []


@pytest.mark.parametrize("slug", ["no-such-kind", "byoe", "config", "a_b", "-x", "x" * 64, "a%00b"])
async def test_an_unknown_slug_is_404(tenant: Tenant, slug: str) -> None:
    assert (await tenant.admin.client.put(f"{BASE}/{slug}/credentials", json={"api_key": "x"})).status_code == 404
    if slug != "no-such-kind":
        body = {"base_url": "http://127.0.0.1:1/v1"}
        assert (await tenant.admin.client.put(f"{BASE}/{slug}/credentials", json=body)).status_code == 404


async def test_any_slug_with_a_base_url_is_an_openai_compatible_endpoint(tenant: Tenant, fake: Any) -> None:
    await configure(tenant, "second-one", base_url=fake.url + "/v1/")
    provider = await read(tenant, "second-one")
    assert (provider["type"], provider["kind"]) == ("openai_compatible", "openai_compatible")
    assert provider["config"]["base_url"] == fake.url + "/v1"
    assert provider["credentials_configured"] is True


async def test_a_new_address_does_not_get_the_old_key(tenant: Tenant, fake_providers: Any) -> None:
    honest, other = await fake_providers.start(), await fake_providers.start()
    await configure(tenant, "mine", base_url=honest.url + "/v1", api_key=KEY)
    await configure(tenant, "mine", base_url=other.url + "/v1")
    await check(tenant)
    assert "authorization" not in other.requests[0].headers
    await configure(tenant, "mine", api_key="sk-another")
    await check(tenant)
    assert other.requests[1].headers["authorization"] == "Bearer sk-another"


async def test_the_sandbox_can_be_added_where_the_installation_has_it(tenant: Tenant) -> None:
    await configure(tenant, "sandbox")
    body = {"provider": "sandbox", "model_id": "echo"}
    assert (await tenant.admin.client.post("/api/admin/models/catalog/", json=body)).status_code == 201
    answer = await tenant.user.client.post("/v1/chat/completions", json={**CHAT, "model": "sandbox/echo"})
    assert answer.status_code == 200


async def test_config_changes_in_part_and_keeps_the_rest(platform: RunningPlatform, tenant: Tenant) -> None:
    await configure(tenant, "openai", api_key=KEY)
    path = f"{BASE}/openai/config"
    answer = await tenant.admin.client.patch(path, json={"timeout_ms": 100})
    assert answer.status_code == 200
    assert (answer.json()["provider_id"], answer.json()["config"]) == ("openai", {"timeout_ms": 100, "max_retries": 2})
    answer = await tenant.admin.client.patch(path, json={"max_retries": 0})
    assert answer.json()["config"] == {"timeout_ms": 100, "max_retries": 0}
    for body, field in [
        ({"timeout_ms": 99}, "timeout_ms"), ({"timeout_ms": 300_001}, "timeout_ms"),
        ({"max_retries": 6}, "max_retries"), ({"max_retries": -1}, "max_retries"),
        ({"max_retries": True}, "max_retries"), ({"base_url": "x"}, "base_url"),
    ]:  # fmt: skip
        bad = await tenant.admin.client.patch(path, json=body)
        assert (bad.status_code, bad.json()["detail"][0]["loc"]) == (422, ["body", field])
    assert [event["details"] for event in await platform.audit(tenant, "provider.config_updated")] == [
        {"timeout_ms": 100},
        {"max_retries": 0},
    ]


async def test_a_disabled_provider_is_not_called_until_it_is_enabled(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    assert (await tenant.user.client.post("/v1/chat/completions", json=CHAT)).status_code == 200
    off = await tenant.admin.client.put(f"{BASE}/mine/status", json={"enabled": False, "reason": "too dear"})
    assert off.status_code == 200
    body = off.json()
    assert (body["provider_id"], body["status"], body["changed_by"], body["reason"]) == (
        "mine", "disabled", str(tenant.admin.id), "too dear",
    )  # fmt: skip
    assert (body["enabled"], body["kill_switch_active"]) == (False, False)
    seen = len(fake.requests)
    refused = await tenant.user.client.post("/v1/chat/completions", json=CHAT)
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "provider_unavailable")
    assert len(fake.requests) == seen
    on = await tenant.admin.client.put(f"{BASE}/mine/status", json={"enabled": True})
    assert (on.json()["status"], on.json()["reason"]) == ("active", None)
    assert (await tenant.user.client.post("/v1/chat/completions", json=CHAT)).status_code == 200
    events = await platform.audit(tenant, "provider.status_changed")
    assert [(event["details"], event["reason"]) for event in events] == [
        ({"enabled": False}, "too dear"),
        ({"enabled": True}, None),
    ]


async def test_the_status_is_the_first_that_applies(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    mine = "WHERE tenant_id = %s"
    platform.sql(f"UPDATE providers SET unhealthy = true {mine}", [tenant.id])
    assert (await read(tenant, "mine"))["status"] == "unhealthy"
    platform.sql(f"UPDATE providers SET enabled = false {mine}", [tenant.id])
    assert (await read(tenant, "mine"))["status"] == "disabled"
    platform.sql(f"UPDATE model_configs SET kill_switch_disabled_at = now() {mine}", [tenant.id])
    assert (await read(tenant, "mine"))["status"] == "kill_switched"
    body = {"provider": "mine", "model_id": "another", "is_active": False}
    await tenant.admin.client.post("/api/admin/models/catalog/", json=body)
    provider = await read(tenant, "mine")
    assert (provider["status"], provider["models_enabled"]) == ("disabled", 1)


async def test_a_health_check_of_a_good_provider(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    check_result = await check(tenant)
    assert set(check_result) == {"provider_id", "health_check_status", "response_time_ms", "checked_at", "error"}
    assert (check_result["provider_id"], check_result["health_check_status"], check_result["error"]) == (
        "mine",
        "healthy",
        None,
    )
    assert 0 < check_result["response_time_ms"] < 5_000
    assert fake.paths == ["/v1/models"]
    assert fake.requests[0].headers["authorization"] == f"Bearer {KEY}"
    provider = await read(tenant, "mine")
    assert (provider["health_check_status"], provider["last_health_check"]) == ("healthy", check_result["checked_at"])
    assert len(await platform.audit(tenant, "provider.health_checked")) == 1


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        (500, "degraded"),
        (429, "degraded"),
        (401, "degraded"),
        ("garbage", "degraded"),
        ("echo_key", "degraded"),
        ("hang", "unreachable"),
        ("drip", "unreachable"),
        ("cut", "unreachable"),
        ("huge", "unreachable"),
        (404, "healthy"),
        (405, "healthy"),
    ],
)
async def test_a_health_check_classifies_the_answer(tenant: Tenant, fake: Any, mode: str | int, status: str) -> None:
    await connect(tenant, fake)
    await tenant.admin.client.put(f"{BASE}/mine/health-check-config", json={"timeout_ms": 300})
    fake.mode = mode
    check_result = await check(tenant)
    assert check_result["health_check_status"] == status
    assert (check_result["response_time_ms"] is None) is (check_result["error"] is not None) is (status != "healthy")
    assert KEY not in str(check_result)


@pytest.mark.parametrize(
    ("slug", "path"),
    [("ollama", "/v1/models"), ("own-anthropic", "/v1/models?limit=1000")],
)
async def test_other_kinds_are_probed_in_their_own_way(tenant: Tenant, fake: Any, slug: str, path: str) -> None:
    if slug == "ollama":
        await configure(tenant, "ollama", local_runtime_base_url=fake.url)
    else:
        model = {"model_id": "m", "display_name": "M", "context_window": 1, "input_cost_per_1k": 0}
        models = [{**model, "output_cost_per_1k": 0}]
        body = {"id": slug, "name": "A", "base_url": fake.url, "format": "anthropic", "models": models, "api_key": KEY}
        assert (await tenant.admin.client.post(f"{BASE}/byoe", json=body)).status_code == 201
    assert (await check(tenant, slug))["health_check_status"] == "healthy"
    assert fake.paths == [path]
    if slug != "ollama":
        assert fake.requests[0].headers["x-api-key"] == KEY


async def test_failures_in_a_row_make_it_unhealthy_and_successes_healthy(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    config = {"failure_threshold": 2, "recovery_threshold": 2}
    await tenant.admin.client.put(f"{BASE}/mine/health-check-config", json=config)
    statuses = []
    for mode in (500, "good", 500, 500, "good", 500, "good", "good"):
        fake.mode = mode
        await check(tenant)
        await platform.refresh()
        statuses.append((await read(tenant, "mine"))["status"])
        assert ((tenant.id, "mine") in platform.host.replica.unhealthy) is (statuses[-1] == "unhealthy")
    a, u = "active", "unhealthy"
    assert statuses == [a, a, a, u, u, u, u, a]
    assert len(await platform.audit(tenant, "provider.became_unhealthy")) == 1
    assert len(await platform.audit(tenant, "provider.recovered")) == 1


@pytest.mark.parametrize("way", ["status", "credentials"])
async def test_new_credentials_or_enabling_reset_the_health(
    platform: RunningPlatform, tenant: Tenant, fake: Any, way: str
) -> None:
    await connect(tenant, fake)
    await tenant.admin.client.put(f"{BASE}/mine/health-check-config", json={"failure_threshold": 1})
    fake.mode = 500
    await check(tenant)
    assert (await read(tenant, "mine"))["status"] == "unhealthy"
    if way == "status":
        answer = await tenant.admin.client.put(f"{BASE}/mine/status", json={"enabled": True})
        assert answer.json()["status"] == "active"
    else:
        await configure(tenant, "mine", base_url=fake.url + "/v1", api_key=KEY)
    provider = await read(tenant, "mine")
    assert (provider["status"], provider["health_check_status"]) == ("active", "unknown")
    assert (tenant.id, "mine") not in platform.host.replica.unhealthy


async def test_health_check_config_has_bounds(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    path = f"{BASE}/mine/health-check-config"
    full = {
        "enabled": False,
        "interval_seconds": 10,
        "timeout_ms": 100,
        "failure_threshold": 1,
        "recovery_threshold": 1,
    }
    answer = await tenant.admin.client.put(path, json=full)
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in full} == full
    (event,) = await platform.audit(tenant, "provider.health_check_config_updated")
    assert (event["resource_id"], event["details"]) == ("mine", full)
    assert (await read(tenant, "mine"))["health_check_config"] == full
    for field, value in [
        ("interval_seconds", 9), ("interval_seconds", 301), ("timeout_ms", 0), ("failure_threshold", 0),
        ("recovery_threshold", 0), ("enabled", "yes"),
    ]:  # fmt: skip
        bad = await tenant.admin.client.put(path, json={field: value})
        assert (bad.status_code, bad.json()["detail"][0]["loc"]) == (422, ["body", field])


async def test_a_health_check_config_changes_in_part(tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    path = f"{BASE}/mine/health-check-config"
    first = {"interval_seconds": 10, "timeout_ms": 200, "failure_threshold": 7, "recovery_threshold": 4}
    await tenant.admin.client.put(path, json=first)
    for body in ({"enabled": False}, {}):
        checks = (await tenant.admin.client.put(path, json=body)).json()
        assert {name: checks[name] for name in (*first, "enabled")} == {**first, "enabled": False}
    assert (await read(tenant, "mine"))["health_check_config"] == {**first, "enabled": False}


async def test_a_provider_is_tried_with_the_model_that_is_named(tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    path = "/api/admin/system/check-provider/mine"
    for model_id in ("large", "small"):
        new = {
            "provider": "mine",
            "model_id": model_id,
            "cost_per_output_token": "0.1" if model_id == "large" else "0.2",
        }
        await tenant.admin.client.post("/api/admin/models/catalog/", json=new)
    assert (await tenant.admin.client.post(path)).json()["model_tested"] == "large"
    assert (await tenant.admin.client.post(path, params={"model": "small"})).json()["model_tested"] == "small"
    assert (await tenant.admin.client.post(path, params={"model": "none"})).status_code == 404
    assert (await tenant.user.client.post(path, params={"model": "small"})).status_code == 403


async def test_the_refusal_of_an_unknown_kind_explains_how_to_create_one(tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/groq/credentials", json={"api_key": KEY})
    assert answer.status_code == 404
    assert "base_url" in answer.json()["detail"]


async def test_everybody_reads_the_health_of_their_own_providers(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    check_result = await check(tenant)
    answer = await tenant.user.client.get("/api/providers/health")
    assert answer.status_code == 200
    assert answer.json() == {
        "providers": [
            {
                "id": "mine", "name": "mine", "status": "active", "health_check_status": "healthy",
                "latency_ms": check_result["response_time_ms"], "last_checked": check_result["checked_at"],
            }
        ]
    }  # fmt: skip
    assert (await other_tenant.user.client.get("/api/providers/health")).json() == {"providers": []}
    assert (await platform.anonymous.get("/api/providers/health")).status_code == 401
    machine = await platform.new_m2m(tenant.id, "chat:write")
    assert (await machine.get("/api/providers/health")).status_code == 403
    machine = await platform.new_m2m(tenant.id, "api:read")
    assert (await machine.get("/api/providers/health")).status_code == 200


async def test_check_provider_makes_the_cheapest_call(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    path = "/api/admin/system/check-provider/mine"
    answer = await tenant.admin.client.post(path)
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"provider_id", "status", "latency_ms", "model_tested", "checked_at"}
    assert (body["provider_id"], body["status"], body["model_tested"]) == ("mine", "reachable", "small")
    assert fake.paths == ["/v1/chat/completions"]
    fake.mode = 503
    failed = (await tenant.admin.client.post(path)).json()
    assert (failed["status"], failed["latency_ms"], failed["error"]) == ("unreachable", None, "http_503")
    assert failed["detail"] == "The provider answered with HTTP status 503."
    fake.mode = "echo_key"
    assert KEY not in (await tenant.admin.client.post(path)).text
    assert len(await platform.audit(tenant, "provider.tested")) == 3


async def test_check_provider_tries_the_default_of_models_that_cost_the_same(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "cut", "echo")
    platform.sql("UPDATE model_configs SET is_default = true WHERE tenant_id = %s AND model_id = 'echo'", [tenant.id])
    body = (await tenant.admin.client.post("/api/admin/system/check-provider/sandbox")).json()
    assert (body["status"], body["model_tested"]) == ("reachable", "echo")


async def test_check_provider_calls_no_model_that_a_kill_switch_stops(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    platform.sql("UPDATE model_configs SET kill_switch_disabled_at = now() WHERE tenant_id = %s", [tenant.id])
    body = (await tenant.admin.client.post("/api/admin/system/check-provider/mine")).json()
    assert (body["status"], body["model_tested"]) == ("reachable", None)
    assert fake.paths == ["/v1/models"]


async def test_a_hanging_provider_holds_no_connection_to_the_database(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    await tenant.admin.client.put(f"{BASE}/mine/health-check-config", json={"timeout_ms": 1_000})
    fake.mode = "hang"
    checks = [asyncio.create_task(check(tenant)) for _ in range(15)]
    while len(fake.requests) < 15:
        await asyncio.sleep(0.01)
    assert (await tenant.admin.client.get(BASE)).status_code == 200
    assert platform.host.database.available_connections() >= 9
    await asyncio.gather(*checks)


CALLS = [
    ("GET", BASE, None),
    ("GET", f"{BASE}/mine", None),
    ("PUT", f"{BASE}/mine/credentials", {"api_key": "x"}),
    ("DELETE", f"{BASE}/mine/credentials", None),
    ("PATCH", f"{BASE}/mine/config", {"timeout_ms": 500}),
    ("PUT", f"{BASE}/mine/status", {"enabled": False}),
    ("POST", f"{BASE}/mine/health-check", None),
    ("PUT", f"{BASE}/mine/health-check-config", {"enabled": False}),
    ("POST", "/api/admin/system/check-provider/mine", None),
    ("PATCH", f"{BASE}/byoe/mine", {"name": "x"}),
    ("DELETE", f"{BASE}/byoe/mine", None),
    ("POST", f"{BASE}/byoe", {"id": "x"}),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_only_permitted_roles_have_access(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, fake: Any,
    method: str, path: str, body: dict[str, Any] | None,
) -> None:  # fmt: skip
    await connect(tenant, fake)

    async def status(client: httpx2.AsyncClient) -> int:
        return (await client.request(method, path, json=body)).status_code

    assert await status(platform.anonymous) == 401
    assert await status(tenant.user.client) == 403
    assert await status(tenant.auditor.client) == (200 if method == "GET" else 403)
    reader = await platform.new_m2m(tenant.id, "admin:read", "api:read")
    assert await status(reader) == (200 if method == "GET" else 403)
    if "mine" in path:
        assert await status(other_tenant.admin.client) == 404
    assert (await read(tenant, "mine"))["status"] == "active"


async def test_an_unknown_provider_is_404_before_its_body_is_read(tenant: Tenant) -> None:
    for method, path, _ in CALLS:
        if "mine" in path and "credentials" not in path:
            answer = await tenant.admin.client.request(method, path.replace("mine", uuid4().hex), json={"a": 1})
            assert answer.status_code == 404, path
            assert "Provider not found" in answer.text


async def test_removed_credentials_leave_a_provider_that_is_not_called(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    await configure(tenant, "openai", api_key=KEY)
    body = {"provider": "openai", "model_id": "gpt"}
    assert (await tenant.admin.client.post("/api/admin/models/catalog/", json=body)).status_code == 201
    mine = "WHERE tenant_id = %s AND id = 'openai'"
    platform.sql(f"UPDATE providers SET health_check_status = 'degraded', unhealthy = true {mine}", [tenant.id])
    path = f"{BASE}/openai/credentials"
    assert (await platform.anonymous.delete(path)).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.delete(path)).status_code == 403
    assert (await tenant.admin.client.delete(path)).status_code == 204

    provider = await read(tenant, "openai")
    assert (provider["credentials_configured"], provider["status"], provider["health_check_status"]) == (
        False, "active", "unknown",
    )  # fmt: skip
    assert platform.sql(f"SELECT sealed_credentials FROM providers {mine}", [tenant.id]) == [(None,)]
    (event,) = await platform.audit(tenant, "provider.credentials_removed")
    assert (event["resource_id"], event["actor_id"]) == ("openai", str(tenant.admin.id))

    # No request is sent to the vendor: the next candidate answers, or an error names what is missing.
    call = {**CHAT, "model": "openai/gpt"}
    alone = await tenant.user.client.post("/v1/chat/completions", json=call)
    assert (alone.status_code, "credential or setting is missing" in alone.text) == (502, True), alone.text
    answer = await tenant.user.client.post("/v1/chat/completions", json={**call, "fallbacks": ["mine/small"]})
    assert (answer.status_code, answer.headers["x-gateway-provider"]) == (200, "mine")
    assert answer.headers["x-gateway-fallbacks"] == "1"

    # Neither a manual nor a scheduled check reports it as an internal error.
    assert "missing" in (await check(tenant, "openai"))["error"]
    platform.sql("UPDATE providers SET last_health_check = now() WHERE tenant_id <> %s OR id = 'mine'", [tenant.id])
    assert await run_due(platform.host.database, platform.host.outbound, platform.host.sealer) == 0
    health = (await tenant.admin.client.get("/api/admin/system/health")).json()
    assert health["components"]["providers"]["openai"]["status"] == "unknown"

    await configure(tenant, "openai", api_key=KEY)
    assert (await read(tenant, "openai"))["credentials_configured"] is True


@pytest.mark.parametrize(
    ("slug", "body", "left"),
    [
        ("azure_openai", {"api_key": KEY, "hosted_endpoint": "https://ours.example.com"}, "hosted_endpoint"),
        ("ollama", {"local_runtime_base_url": "http://localhost:11434"}, "local_runtime_base_url"),
        ("bedrock", {"cloud_access_key_id": "A" * 20, "cloud_secret_access_key": KEY, "cloud_region": "eu-central-1"},
         "cloud_access_key_id"),
    ],
)  # fmt: skip
async def test_removing_credentials_also_removes_their_public_fields(
    platform: RunningPlatform, tenant: Tenant, slug: str, body: dict[str, Any], left: str
) -> None:
    await configure(tenant, slug, **body)
    await tenant.admin.client.patch(f"{BASE}/{slug}/config", json={"timeout_ms": 200})
    assert (await tenant.admin.client.delete(f"{BASE}/{slug}/credentials")).status_code == 204
    provider = await read(tenant, slug)
    assert (provider["credentials_configured"], provider["config"]) == (False, {"timeout_ms": 200, "max_retries": 2})
    assert "missing" in (await check(tenant, slug))["error"]
    assert (await read(tenant, slug))["health_check_status"] == "unknown"


async def test_credentials_of_a_kind_without_credentials_are_not_removed(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake)
    await configure(tenant, "sandbox")
    for slug in ("mine", "sandbox"):
        answer = await tenant.admin.client.delete(f"{BASE}/{slug}/credentials")
        assert answer.status_code == 409, answer.text
        assert "works without credentials" in answer.json()["detail"]
    await configure(other_tenant, "openai", api_key=KEY)
    for slug in ("openai", "no-such", "a%00b"):
        assert (await tenant.admin.client.delete(f"{BASE}/{slug}/credentials")).status_code == 404
    assert (await read(other_tenant, "openai"))["credentials_configured"] is True
