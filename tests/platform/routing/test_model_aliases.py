"""Model aliases: their administration, their requests and their comparison (docs/deployments.md)."""

import socket
from collections import Counter
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.engine.records.outcome import Failed
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.routing.model_aliases import comparing, service
from gatehouse.platform.worker import process
from gatehouse.platform.worker.app import Platform
from gatehouse.platform.worker.connection_sharing import ConnectionBoard
from gatehouse.platform.worker.host import PlatformHost

BASE = "/api/v1/admin/model-aliases"
DEFAULTS: dict[str, Any] = {
    "credential": None, "role": "live", "weight": 1, "tier": 0, "share": 1.0, "max_concurrent_requests": None,
    "requests_per_minute": None, "tokens_per_minute": None,
}  # fmt: skip
ONE: dict[str, Any] = {"provider": "one", "model_id": "echo"}
TWO: dict[str, Any] = {"provider": "two", "model_id": "echo"}
FAST: dict[str, Any] = {"name": "fast", "deployments": [{**ONE, "weight": 3}, TWO]}


@pytest.fixture
async def served(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    """An organization with two providers."""
    await platform.add_provider(tenant.id, "one", "sandbox", "echo", "status-503")
    await platform.add_provider(tenant.id, "two", "sandbox", "echo")
    return tenant


async def create(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json={**FAST, **fields})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def chat(person: Person, model: str = "fast", **fields: Any) -> httpx2.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], **fields}
    return await person.client.post("/v1/chat/completions", json=body)


async def stored(platform: RunningPlatform) -> None:
    """Wait until the records of all requests are stored."""
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()


async def test_the_answer_to_a_creation_is_what_a_read_returns(served: Tenant) -> None:
    created = await create(served, description="An example")
    assert created == {
        "id": created["id"],
        "tenant_id": str(served.id),
        "name": "fast",
        "description": "An example",
        "enabled": True,
        "balance": "weighted",
        "sticky": False,
        "deployments": [{**DEFAULTS, **ONE, "weight": 3}, {**DEFAULTS, **TWO}],
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
    }
    assert (await served.auditor.client.get(f"{BASE}/{created['id']}")).json() == created


async def test_requests_are_shared_and_their_records_name_the_alias(platform: RunningPlatform, served: Tenant) -> None:
    await create(served)
    answers = [await chat(served.user) for _ in range(20)]
    assert Counter(answer.headers["X-Gateway-Provider"] for answer in answers) == {"one": 15, "two": 5}
    assert {answer.json()["model"] for answer in answers} == {"fast"}
    await chat(served.user, "one/echo")
    await stored(platform)
    listing = await served.admin.client.get("/api/v1/usage/records", params={"model_alias": "fast"})
    records = listing.json()["records"]
    assert Counter((record["provider"], record["model_alias"], record["shadow"]) for record in records) == {
        ("one", "fast", False): 15,
        ("two", "fast", False): 5,
    }
    events = await platform.audit(served, "gateway.request")
    assert Counter(event["details"].get("model_alias") for event in events) == {"fast": 20, None: 1}


async def test_the_list_of_models_has_the_aliases_that_the_caller_can_use(
    platform: RunningPlatform, served: Tenant, other_tenant: Tenant
) -> None:
    await create(served)
    await create(served, name="hidden", deployments=[{"provider": "one", "model_id": "status-503"}])
    platform.sql(
        "UPDATE model_configs SET access = 'restricted' WHERE tenant_id = %s AND model_id = 'status-503'", [served.id]
    )
    await create(served, name="off", enabled=False)
    names = [model["id"] for model in (await served.user.client.get("/v1/models")).json()["data"]]
    assert "fast" in names
    assert not {"hidden", "off"} & set(names)
    assert (await served.user.client.get("/v1/models/fast")).json()["id"] == "fast"
    assert (await served.user.client.get("/v1/models/hidden")).status_code == 404
    assert (await chat(served.user, "hidden")).status_code == 404
    assert (await chat(served.user, "off")).status_code == 404
    assert (await chat(other_tenant.user)).status_code == 404


async def test_changes_are_in_force_at_once(served: Tenant) -> None:
    created = await create(served)
    path = f"{BASE}/{created['id']}"
    updated = await served.admin.client.put(path, json={"deployments": [TWO], "description": "Only two"})
    assert updated.json()["deployments"] == [{**DEFAULTS, **TWO}]
    assert [(await chat(served.user)).headers["X-Gateway-Provider"] for _ in range(3)] == ["two"] * 3
    await served.admin.client.put(path, json={"enabled": False, "description": None})
    read = (await served.admin.client.get(path)).json()
    assert (read["enabled"], read["description"], read["name"]) == (False, None, "fast")
    assert (await chat(served.user)).status_code == 404


async def test_each_worker_knows_its_number_and_the_number_of_workers(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = platform.installed.settings

    def make_host() -> PlatformHost:
        return PlatformHost(settings, Database(platform.installed.url), platform.installed.master_keys)

    app = Platform(settings, make_host)
    # The server is not run, so that the application can be started here.
    monkeypatch.setattr(process._WorkerServer, "run", lambda server: setattr(server, "started", True))
    with socket.socket() as listener:
        process.serve_gateway(app, settings, listener, -1, ConnectionBoard.of(3)[2])
    async with app._serving():
        assert app._host is not None
        assert (app._host.ports.workers, app._host.ports.worker) == (3, 2)


async def test_limits_are_answered_with_429(served: Tenant) -> None:
    await create(served, deployments=[{**ONE, "requests_per_minute": 1}])
    assert (await chat(served.user)).status_code == 200
    answer = await chat(served.user)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "deployments_full")
    assert 0 < int(answer.headers["Retry-After"]) <= 60


async def test_a_kill_switch_moves_requests_to_the_other_deployment(served: Tenant) -> None:
    await create(served)
    body = {"reason": "maintenance"}
    switched = await served.admin.client.post("/api/v1/admin/kill-switch/providers/one/disable", json=body)
    assert switched.status_code == 200, switched.text
    assert {(await chat(served.user)).headers["X-Gateway-Provider"] for _ in range(4)} == {"two"}


async def test_the_list_has_a_window_and_is_sorted_by_name(
    platform: RunningPlatform, served: Tenant, other_tenant: Tenant
) -> None:
    await platform.add_provider(other_tenant.id, "one", "sandbox", "echo")
    await create(other_tenant, deployments=[ONE])
    rows = [await create(served, name=name) for name in ("a", "b", "c")]
    page = (await served.auditor.client.get(BASE, params={"limit": 1, "offset": 1})).json()
    assert page == {"model_aliases": [rows[1]], "total": 3, "limit": 1, "offset": 1}
    assert (await served.auditor.client.get(BASE)).json()["model_aliases"] == rows


async def test_the_list_is_searched_filtered_and_sorted(served: Tenant) -> None:
    await create(served, name="alpha", description="For agents", enabled=False)
    await create(served, name="beta", balance="least_busy")
    await create(served, name="gamma")

    async def names(**query: Any) -> list[str]:
        answer = await served.auditor.client.get(BASE, params=query)
        assert answer.status_code == 200, answer.text
        assert answer.json()["total"] == len(answer.json()["model_aliases"])
        return [alias["name"] for alias in answer.json()["model_aliases"]]

    assert await names(search="AGENT") == ["alpha"]
    assert await names(enabled=True, sort="-name") == ["gamma", "beta"]
    assert await names(sort="balance") == ["beta", "alpha", "gamma"]
    assert await names(sort="-created_at") == ["gamma", "beta", "alpha"]
    assert (await served.admin.client.get(BASE, params={"sort": "weight"})).status_code == 422


async def test_a_deleted_row_is_gone(served: Tenant) -> None:
    path = f"{BASE}/{(await create(served))['id']}"
    assert (await served.admin.client.delete(path)).status_code == 204
    answer = await served.admin.client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Model alias not found"})
    assert (await chat(served.user)).status_code == 404


async def test_a_change_of_an_earlier_version_is_412(served: Tenant) -> None:
    path = f"{BASE}/{(await create(served))['id']}"
    version = {"If-Match": (await served.admin.client.get(path)).headers["ETag"]}
    assert (await served.admin.client.put(path, json={"enabled": False}, headers=version)).status_code == 200
    assert (await served.admin.client.put(path, json={"enabled": True}, headers=version)).status_code == 412
    assert (await served.admin.client.delete(path, headers=version)).status_code == 412
    assert (await served.admin.client.get(path)).json()["enabled"] is False


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, served: Tenant) -> None:
    path = f"{BASE}/{(await create(served))['id']}"
    operations = [("GET", BASE), ("POST", BASE), ("GET", path), ("PUT", path), ("DELETE", path)]
    for method, url in (*operations, ("GET", f"{path}/comparison")):
        body = None if method == "GET" else FAST
        assert (await platform.anonymous.request(method, url, json=body)).status_code == 401
        assert (await served.user.client.request(method, url, json=body)).status_code == 403
        if method != "GET":
            assert (await served.auditor.client.request(method, url, json=body)).status_code == 403
    assert (await served.admin.client.get(BASE)).json()["total"] == 1


async def test_the_row_of_another_organization_is_404(
    platform: RunningPlatform, served: Tenant, other_tenant: Tenant
) -> None:
    await platform.add_provider(other_tenant.id, "one", "sandbox", "echo")
    theirs = await create(other_tenant, deployments=[ONE])
    for row_id in (theirs["id"], uuid4()):
        for method, rest in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/comparison")):
            body = None if method == "GET" else {"enabled": False}
            answer = await served.admin.client.request(method, f"{BASE}/{row_id}{rest}", json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Model alias not found"})
    assert (await other_tenant.admin.client.get(f"{BASE}/{theirs['id']}")).json() == theirs


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"description": "x" * 2_001}, "description"),
        ({"balance": "random"}, "balance"),
        ({"sticky": True, "balance": "least_busy"}, "sticky"),
        ({"enabled": None}, "enabled"),
        ({"deployments": []}, "deployments"),
        ({"deployments": [ONE] * 33}, "deployments"),
        ({"deployments": [{**ONE, "role": "shadow"}]}, "deployments"),
        ({"deployments": [ONE, ONE]}, "deployments.1.model_id"),
        ({"deployments": [{**ONE, "model_id": "none"}]}, "deployments.0.model_id"),
        ({"deployments": [{**ONE, "provider": "none"}]}, "deployments.0.model_id"),
        ({"deployments": [{**ONE, "weight": 1_001}]}, "deployments.0.weight"),
        ({"deployments": [{**ONE, "requests_per_minute": 0}]}, "deployments.0.requests_per_minute"),
        ({"deployments": [{**ONE, "share": 0.5}]}, "deployments.0.share"),
        ({"deployments": [ONE, {**TWO, "role": "shadow", "tier": 1}]}, "deployments.1.tier"),
        ({"deployments": [ONE, {**TWO, "role": "shadow", "share": 1.5}]}, "deployments.1.share"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_bad_input_is_422_with_the_name_of_the_field(served: Tenant, fields: dict[str, Any], field: str) -> None:
    created = await create(served)
    client = served.admin.client
    for answer in (
        await client.post(BASE, json={**FAST, "name": "other", **fields}),
        await client.put(f"{BASE}/{created['id']}", json=fields),
    ):
        assert answer.status_code == 422, answer.text
        assert ".".join(map(str, answer.json()["detail"][0]["loc"])) == f"body.{field}"
    assert (await client.get(BASE)).json()["model_aliases"] == [created]


@pytest.mark.parametrize("name", ["", "auto", "a/b", "a b", "x" * 129, None, "/", "-a"])
async def test_a_name_that_no_alias_can_have_is_422(served: Tenant, name: str | None) -> None:
    answer = await served.admin.client.post(BASE, json={**FAST, "name": name})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "name"])


async def test_a_name_is_used_once_in_an_organization(served: Tenant) -> None:
    created = await create(served)
    answer = await served.admin.client.post(BASE, json=FAST)
    assert (answer.status_code, answer.json()) == (
        409,
        {"detail": "The organization already has a model alias with this name. Choose another name."},
    )
    renamed = await served.admin.client.put(f"{BASE}/{created['id']}", json={"name": "other"})
    assert (renamed.status_code, renamed.json()["detail"][0]["loc"]) == (422, ["body", "name"])


async def test_each_change_is_an_audit_event(platform: RunningPlatform, served: Tenant) -> None:
    created = await create(served)
    path = f"{BASE}/{created['id']}"
    # The second changes nothing.
    for _ in range(2):
        await served.admin.client.put(path, json={"enabled": False})
    await served.admin.client.delete(path)
    settings = {
        "description": None,
        "enabled": True,
        "balance": "weighted",
        "sticky": False,
        "deployments": created["deployments"],
    }
    for action, details in (("created", settings), ("updated", {"enabled": False}), ("deleted", {})):
        (event,) = await platform.audit(served, f"model_alias.{action}")
        assert (event["resource_type"], event["resource_id"]) == ("model_alias", created["id"])
        assert (event["actor_id"], event["details"]) == (str(served.admin.id), {"name": "fast", **details})


async def test_creation_stops_at_the_limit(served: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_MODEL_ALIASES", 1)
    created = await create(served)
    answer = await served.admin.client.post(BASE, json={**FAST, "name": "other"})
    assert (answer.status_code, answer.json()) == (
        409,
        {"detail": "The organization has the maximum number of model aliases. Delete some first."},
    )
    await served.admin.client.delete(f"{BASE}/{created['id']}")
    await create(served)


def record(served: Tenant, provider: str, latency: float, **fields: Any) -> Any:
    return outcome(
        served.id, model_alias="fast", provider=provider, model_id="echo", latency_ms=latency, cost_usd="0.01", **fields
    )


async def test_the_comparison_has_requests_errors_cost_and_latency(
    platform: RunningPlatform, served: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await create(served)
    journal = Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal")
    failed = Failed(provider="two", model_id="echo", status=500, reason="http_500")
    timeout = Failed(provider="two", model_id="echo", status=None, reason="timeout")
    skipped = Failed(provider="two", model_id="echo", status=None, reason="circuit_open")
    await journal.append(
        *(record(served, "one", 10.0 * number) for number in range(1, 21)),
        record(served, "one", 5.0, attempts=(failed, skipped)),
        record(served, "two", 100.0),
        record(served, "two", 100.0, outcome="error"),
        record(served, "two", 300.0, shadow=True),
        # An answer from the response cache, which no deployment sent.
        record(served, "one", 5_000.0, cache="hit"),
        # A call that timed out: the record has the provider because of the cost.
        record(served, "two", 100.0, outcome="error", attempts=(timeout,)),
        outcome(served.id, provider="one", model_id="echo"),
    )
    await journal.killed()
    await journal.drain()
    path = f"{BASE}/{created['id']}/comparison"
    body = (await served.auditor.client.get(path)).json()
    assert (body["alias"], body["records"], body["truncated"]) == ("fast", 26, False)
    by_key = {(entry["provider"], entry["role"]): entry for entry in body["deployments"]}
    assert set(by_key) == {("one", "live"), ("two", "live"), ("two", "shadow")}
    one = by_key["one", "live"]
    assert (one["requests"], one["errors"], one["cost_usd"]) == (21, 0, 0.21)
    assert (one["latency_median_ms"], one["latency_p95_ms"]) == (100.0, 190.0)
    two = by_key["two", "live"]
    assert (two["requests"], two["errors"], two["error_rate"]) == (4, 3, 0.75)
    assert two["cost_usd"] == 0.03
    assert by_key["two", "shadow"]["latency_median_ms"] == 300.0
    earlier = (await served.admin.client.get(path, params={"to": "2026-01-02", "from": "2026-01-01"})).json()
    assert (earlier["records"], [entry["requests"] for entry in earlier["deployments"]]) == (0, [0, 0])
    monkeypatch.setattr(comparing, "MAX_COMPARED_RECORDS", 5)
    body = (await served.auditor.client.get(path)).json()
    assert (body["records"], body["truncated"]) == (5, True)


@pytest.mark.parametrize(
    "period", [{"from": "2026-01-02", "to": "2026-01-01"}, {"from": "2025-01-01", "to": "2026-01-01"}]
)
async def test_the_period_of_a_comparison_is_bounded(served: Tenant, period: dict[str, str]) -> None:
    created = await create(served)
    answer = await served.admin.client.get(f"{BASE}/{created['id']}/comparison", params=period)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["query", "from"])
