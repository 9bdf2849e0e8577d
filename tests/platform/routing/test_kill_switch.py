"""The kill switch of models and providers (docs/kill-switch.md)."""

from time import time
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id

BASE = "/api/v1/admin/kill-switch"


def chat(model: str, *fallbacks: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return {**body, "fallbacks": list(fallbacks)} if fallbacks else body


@pytest.fixture
async def models(platform: RunningPlatform, tenant: Tenant) -> dict[str, str]:
    """Two models of the sandbox and one of another provider: ids by `provider/model-id`."""
    results = {}
    for provider, model_id in [("sandbox", "echo"), ("sandbox", "tools"), ("spare", "echo")]:
        platform.sql(
            "INSERT INTO providers (tenant_id, id, name, kind) VALUES (%s, %s, %s, 'sandbox') ON CONFLICT DO NOTHING",
            [tenant.id, provider, provider],
        )
        results[f"{provider}/{model_id}"] = str(new_id())
        platform.sql(
            "INSERT INTO model_configs (id, tenant_id, provider, model_id) VALUES (%s, %s, %s, %s)",
            [results[f"{provider}/{model_id}"], tenant.id, provider, model_id],
        )
    return results


async def test_a_disabled_model_is_503_and_the_providers_other_models_answer(
    tenant: Tenant, models: dict[str, str]
) -> None:
    admin, user = tenant.admin.client, tenant.user.client
    assert (await user.post("/v1/chat/completions", json=chat("sandbox/echo"))).status_code == 200
    answer = await admin.post(f"{BASE}/models/{models['sandbox/echo']}/disable", json={"reason": "cost_runaway"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["propagation"].pop("elapsed_ms") >= 0
    assert body["propagation"]["pending"] == []
    assert body["propagation"]["confirmed"] == body["propagation"]["total"] >= 1
    assert body["kill_switch_disabled_at"] is not None
    assert body | {"display_name": None, "is_active": True, "model_id": "echo"} == body
    assert (body["kill_switch_active"], body["disabled_reason"]) == (True, "cost_runaway")
    refused = await user.post("/v1/chat/completions", json=chat("sandbox/echo"))
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "provider_unavailable")
    assert (await user.post("/v1/chat/completions", json=chat("sandbox/tools"))).status_code == 200
    read = (await tenant.auditor.client.get(f"{BASE}/models/{models['sandbox/echo']}")).json()
    assert read == {name: value for name, value in body.items() if name != "propagation"}


async def test_a_released_model_answers_again(tenant: Tenant, models: dict[str, str]) -> None:
    path = f"{BASE}/models/{models['sandbox/echo']}"
    await tenant.admin.client.post(f"{path}/disable", json={"reason": "other"})
    body = (await tenant.admin.client.post(f"{path}/enable")).json()
    assert (body["kill_switch_active"], body["kill_switch_disabled_at"], body["disabled_reason"]) == (False, None, None)
    assert body["propagation"]["pending"] == []
    assert (await tenant.user.client.post("/v1/chat/completions", json=chat("sandbox/echo"))).status_code == 200


async def test_fallbacks_skip_switched_off_models_and_fail_if_all_are_off(
    tenant: Tenant, models: dict[str, str]
) -> None:
    call = chat("sandbox/echo", "spare/echo")
    await tenant.admin.client.post(f"{BASE}/models/{models['sandbox/echo']}/disable", json={"reason": "other"})
    answer = await tenant.user.client.post("/v1/chat/completions", json=call)
    assert (answer.status_code, answer.headers["x-gateway-provider"]) == (200, "spare")
    await tenant.admin.client.post(f"{BASE}/providers/spare/disable", json={"reason": "other"})
    answer = await tenant.user.client.post("/v1/chat/completions", json=call)
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "provider_unavailable")


async def test_a_provider_is_switched_off_and_on_with_all_its_models(
    platform: RunningPlatform, tenant: Tenant, models: dict[str, str]
) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/providers/sandbox/disable", json={"reason": "security_event"})
    body = answer.json()
    assert answer.status_code == 200
    assert [(model["model_id"], model["disabled_reason"]) for model in body["models"]] == [
        ("echo", "security_event"),
        ("tools", "security_event"),
    ]
    assert (body["provider"], body["total_models"], body["kill_switch_disabled_count"], body["kill_switch_active"]) == (
        "sandbox", 2, 2, True,
    )  # fmt: skip
    listed = (await tenant.auditor.client.get(f"{BASE}/providers")).json()
    assert {name: value for name, value in body.items() if name != "propagation"} in listed
    assert [summary["provider"] for summary in listed] == ["sandbox", "spare"]
    assert [summary["kill_switch_active"] for summary in listed] == [True, False]
    # A later model is covered, and no single model can be released.
    platform.sql(
        "INSERT INTO model_configs (id, tenant_id, provider, model_id) VALUES (%s, %s, 'sandbox', 'late')",
        [new_id(), tenant.id],
    )
    alone = await tenant.admin.client.post(f"{BASE}/models/{models['sandbox/tools']}/enable")
    assert alone.status_code == 409
    assert "/providers/sandbox/enable" in alone.text
    (summary, _) = (await tenant.admin.client.get(f"{BASE}/providers")).json()
    assert (summary["total_models"], summary["kill_switch_disabled_count"]) == (3, 3)
    assert summary["provider_disabled_reason"] == "security_event"
    body = (await tenant.admin.client.post(f"{BASE}/providers/sandbox/enable")).json()
    assert (body["kill_switch_disabled_count"], body["kill_switch_active"]) == (0, False)


async def test_the_switches_are_searched_and_paged_by_model(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, models: dict[str, str]
) -> None:
    platform.sql(
        "INSERT INTO providers (tenant_id, id, name, kind) VALUES (%s, 'bare', 'No 100%%', 'sandbox')", [tenant.id]
    )
    platform.sql("UPDATE model_configs SET display_name = 'Wrench' WHERE id = %s", [models["sandbox/tools"]])
    await platform.add_provider(other_tenant.id, "elsewhere", "sandbox", "echo")

    async def listed(**query: object) -> tuple[list[tuple[str, list[str]]], str]:
        answer = await tenant.auditor.client.get(f"{BASE}/providers", params={str(k): str(v) for k, v in query.items()})
        assert answer.status_code == 200, answer.text
        shown = [(one["provider"], [model["model_id"] for model in one["models"]]) for one in answer.json()]
        return shown, answer.headers["x-total-count"]

    sandbox, spare = ("sandbox", ["echo", "tools"]), ("spare", ["echo"])
    assert await listed() == ([("bare", []), sandbox, spare], "4")
    # A provider whose models are on two pages is on both, with the numbers of all its models.
    assert await listed(limit=2) == ([("bare", []), ("sandbox", ["echo"])], "4")
    assert await listed(limit=2, offset=2) == ([("sandbox", ["tools"]), spare], "4")
    assert await listed(limit=2, offset=4) == ([], "4")
    (part,) = (await tenant.auditor.client.get(f"{BASE}/providers?limit=1&offset=2")).json()
    assert (part["total_models"], part["kill_switch_disabled_count"]) == (2, 0)

    assert await listed(search="ECHO") == ([("sandbox", ["echo"]), spare], "2")
    assert await listed(search="SandB") == ([sandbox], "2")
    assert await listed(search="wrench") == ([("sandbox", ["tools"])], "1")
    assert await listed(search="0%") == ([("bare", [])], "1")
    assert await listed(search="%") == ([("bare", [])], "1")
    assert await listed(search="echotools") == ([], "0")
    assert await listed(search="elsewhere") == ([], "0")

    await tenant.admin.client.post(f"{BASE}/models/{models['sandbox/tools']}/disable", json={"reason": "other"})
    await tenant.admin.client.post(f"{BASE}/providers/spare/disable", json={"reason": "other"})
    await tenant.admin.client.post(f"{BASE}/providers/bare/disable", json={"reason": "other"})
    off = [("bare", []), ("sandbox", ["tools"]), spare]
    assert await listed(kill_switch_active="true") == (off, "3")
    assert await listed(kill_switch_active="false") == ([("sandbox", ["echo"])], "1")
    assert await listed(kill_switch_active="true", search="spare", limit=1) == ([spare], "1")

    refused = await tenant.auditor.client.get(f"{BASE}/providers?limit=201")
    assert refused.status_code == 400
    assert refused.json()["detail"][0]["loc"] == ["query", "limit"]


async def test_a_provider_without_models_is_switched_off_for_later_models(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    platform.sql("INSERT INTO providers (tenant_id, id, name, kind) VALUES (%s, 'bare', 'x', 'sandbox')", [tenant.id])
    answer = await tenant.admin.client.post(f"{BASE}/providers/bare/disable", json={"reason": "other"})
    summary = answer.json()
    assert (answer.status_code, summary["total_models"], summary["kill_switch_active"]) == (200, 0, True)
    assert (summary["propagation"]["confirmed"], summary["propagation"]["pending"]) == (
        summary["propagation"]["total"],
        [],
    )
    assert summary["propagation"]["total"] >= 1
    provider = (await tenant.auditor.client.get("/api/admin/providers/bare")).json()
    assert (provider["status"], provider["enabled"], provider["kill_switch_active"]) == ("kill_switched", True, True)
    new = {"provider": "bare", "model_id": "echo"}
    model = (await tenant.admin.client.post("/api/admin/models/catalog/", json=new)).json()
    state = (await tenant.auditor.client.get(f"{BASE}/models/{model['id']}")).json()
    assert (state["kill_switch_active"], state["disabled_reason"]) == (True, "other")
    call = {"model": "bare/echo", "messages": [{"role": "user", "content": "hello"}]}
    refused = await tenant.user.client.post("/v1/chat/completions", json=call)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "provider_unavailable")
    assert (await tenant.admin.client.post(f"{BASE}/providers/bare/enable")).status_code == 200
    assert (await tenant.user.client.post("/v1/chat/completions", json=call)).status_code == 200
    events = await platform.audit(tenant, "kill_switch_disable")
    assert [(event["target_provider"], event["target_model"]) for event in events] == [("bare", "*")]


async def test_a_providers_switch_survives_the_removal_of_the_provider(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    model = {
        "model_id": "m", "display_name": "M", "context_window": 1000, "input_cost_per_1k": 1, "output_cost_per_1k": 1,
    }  # fmt: skip
    own = {"id": "own", "name": "Own", "format": "openai", "base_url": "http://127.0.0.1:9/v1", "models": [model]}
    assert (await tenant.admin.client.post("/api/admin/providers/byoe", json=own)).status_code == 201
    await tenant.admin.client.post(f"{BASE}/providers/own/disable", json={"reason": "security_event"})
    assert (await tenant.admin.client.delete("/api/admin/providers/byoe/own")).status_code < 300
    own["models"] = [{**model, "model_id": "other"}]
    assert (await tenant.admin.client.post("/api/admin/providers/byoe", json=own)).status_code == 201
    call = {"model": "own/other", "messages": [{"role": "user", "content": "hello"}]}
    assert (await tenant.user.client.post("/v1/chat/completions", json=call)).status_code == 503
    assert (await tenant.admin.client.get("/api/admin/providers/own")).json()["status"] == "kill_switched"


async def test_disabled_and_kill_switched_models_are_distinguished(tenant: Tenant, models: dict[str, str]) -> None:
    await tenant.admin.client.post(f"{BASE}/providers/sandbox/disable", json={"reason": "other"})
    for enabled in (False, True):
        shown = (await tenant.admin.client.put("/api/admin/providers/sandbox/status", json={"enabled": enabled})).json()
        assert (shown["status"], shown["enabled"], shown["kill_switch_active"]) == ("kill_switched", enabled, True)


async def test_a_providers_switch_does_not_affect_other_organizations(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, models: dict[str, str]
) -> None:
    await platform.add_provider(other_tenant.id, "sandbox", "sandbox", "echo")
    await tenant.admin.client.post(f"{BASE}/providers/sandbox/disable", json={"reason": "other"})
    call = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hello"}]}
    assert (await tenant.user.client.post("/v1/chat/completions", json=call)).status_code == 503
    assert (await other_tenant.user.client.post("/v1/chat/completions", json=call)).status_code == 200
    await other_tenant.admin.client.post(f"{BASE}/providers/sandbox/enable")
    assert (await tenant.user.client.post("/v1/chat/completions", json=call)).status_code == 503


async def test_every_model_has_an_audit_event_and_the_whole_call_one(
    platform: RunningPlatform, tenant: Tenant, models: dict[str, str]
) -> None:
    await tenant.admin.client.post(f"{BASE}/providers/sandbox/disable", json={"reason": "maintenance"})
    await tenant.admin.client.post(f"{BASE}/models/{models['spare/echo']}/disable", json={"reason": "other"})
    await tenant.admin.client.post(f"{BASE}/providers/sandbox/enable")
    seen = [
        (event["actor_id"], event["target_provider"], event["target_model"], event["reason"])
        for event in await platform.audit(tenant, "kill_switch_disable")
    ]
    actor = str(tenant.admin.id)
    assert seen == [
        (actor, "sandbox", "*", "maintenance"),
        (actor, "sandbox", "echo", "maintenance"),
        (actor, "sandbox", "tools", "maintenance"),
        (actor, "spare", "echo", "other"),
    ]
    events = await platform.audit(tenant, "kill_switch_enable")
    assert [event["target_model"] for event in events] == ["*", "echo", "tools"]


async def test_disabling_again_keeps_the_first_moment_and_takes_the_newer_reason(
    tenant: Tenant, models: dict[str, str]
) -> None:
    path = f"{BASE}/models/{models['sandbox/echo']}/disable"
    first = (await tenant.admin.client.post(path, json={"reason": "maintenance"})).json()
    second = (await tenant.admin.client.post(path, json={"reason": "security_event"})).json()
    assert second["kill_switch_disabled_at"] == first["kill_switch_disabled_at"]
    assert second["disabled_reason"] == "security_event"


@pytest.mark.parametrize("body", [None, {}, {"reason": None}, {"reason": "boredom"}, {"reason": 1}])
@pytest.mark.parametrize("target", ["providers/sandbox", "models"])
async def test_a_missing_or_unknown_reason_is_400_and_names_the_field(
    tenant: Tenant, models: dict[str, str], target: str, body: dict[str, Any] | None
) -> None:
    if target == "models":
        target = f"models/{models['sandbox/echo']}"
    sent = {} if body is None else {"json": body}
    answer = await tenant.admin.client.post(f"{BASE}/{target}/disable", **sent)
    assert answer.status_code == 400
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["body", "reason"]]
    listed = (await tenant.admin.client.get(f"{BASE}/providers")).json()
    assert not any(summary["kill_switch_active"] for summary in listed)


async def test_unknown_entries_and_those_of_other_organizations_are_404(
    tenant: Tenant, other_tenant: Tenant, models: dict[str, str]
) -> None:
    for client, target in [
        (tenant.admin.client, f"models/{uuid4()}"),
        (tenant.admin.client, "providers/nowhere"),
        (other_tenant.admin.client, f"models/{models['sandbox/echo']}"),
        (other_tenant.admin.client, "providers/sandbox"),
    ]:
        assert (await client.post(f"{BASE}/{target}/disable", json={"reason": "other"})).status_code == 404
        assert (await client.post(f"{BASE}/{target}/enable")).status_code == 404
    answer = await other_tenant.admin.client.get(f"{BASE}/models/{models['sandbox/echo']}")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Model config not found"})


async def test_only_administrators_switch_and_auditors_read(
    platform: RunningPlatform, tenant: Tenant, models: dict[str, str]
) -> None:
    writes = [f"{target}/{verb}" for target in (f"models/{models['sandbox/echo']}", "providers/sandbox")
              for verb in ("disable", "enable")]  # fmt: skip
    reads = ["providers", f"models/{models['sandbox/echo']}", "propagation"]
    for path in writes:
        assert (await platform.anonymous.post(f"{BASE}/{path}", json={"reason": "other"})).status_code == 401
        for person in (tenant.user, tenant.auditor):
            assert (await person.client.post(f"{BASE}/{path}", json={"reason": "other"})).status_code == 403
    for path in reads:
        assert (await platform.anonymous.get(f"{BASE}/{path}")).status_code == 401
        assert (await tenant.user.client.get(f"{BASE}/{path}")).status_code == 403
        assert (await tenant.auditor.client.get(f"{BASE}/{path}")).status_code == 200
    machine = await platform.new_m2m(tenant.id, "admin:read")
    assert (await machine.get(f"{BASE}/providers")).status_code == 200
    assert (await machine.post(f"{BASE}/{writes[0]}", json={"reason": "other"})).status_code == 403


async def test_engaging_needs_no_second_factor_and_releasing_does(
    platform: RunningPlatform, tenant: Tenant, models: dict[str, str]
) -> None:
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    path = f"{BASE}/models/{models['sandbox/echo']}"
    assert (await tenant.admin.client.post(f"{path}/disable", json={"reason": "other"})).status_code == 200
    refused = await tenant.admin.client.post(f"{path}/enable")
    assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")


async def test_removing_a_switched_off_entry_releases_its_switch(
    platform: RunningPlatform, tenant: Tenant, models: dict[str, str]
) -> None:
    """The removal requires a second factor, because the same model could be added again at once, and would answer."""
    await platform.require_mfa(tenant.id)
    switched, other = models["sandbox/echo"], models["spare/echo"]
    await tenant.admin.client.post(f"{BASE}/models/{switched}/disable", json={"reason": "other"})
    catalog = "/api/admin/models/catalog"
    refused = await tenant.admin.client.delete(f"{catalog}/{switched}")
    assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")
    assert (await tenant.admin.client.delete(f"{catalog}/{other}")).status_code == 204
    stepped_up = await platform.new_person(tenant.id, "admin", mfa_at=time())
    assert (await stepped_up.client.delete(f"{catalog}/{switched}")).status_code == 204


async def test_the_last_changes_are_shown_with_their_times_and_workers(
    tenant: Tenant, other_tenant: Tenant, models: dict[str, str]
) -> None:
    await tenant.admin.client.post(f"{BASE}/providers/sandbox/disable", json={"reason": "other"})
    await tenant.admin.client.post(f"{BASE}/models/{models['spare/echo']}/disable", json={"reason": "other"})
    report = (await tenant.auditor.client.get(f"{BASE}/propagation")).json()
    switches = [change for change in report["changes"] if change["topic"] == "switch"]
    assert [change["targets"] for change in switches] == [["spare/echo"], ["sandbox/echo", "sandbox/tools"]]
    assert [change["target_count"] for change in switches] == [1, 2]
    assert switches[0]["revision"] > switches[1]["revision"]
    assert switches[0]["at"] > switches[1]["at"]
    assert all(not change["pending"] and change["confirmed"] == change["total"] for change in switches)
    assert report["nodes"][0]["revision"] >= switches[0]["revision"]
    assert len((await tenant.auditor.client.get(f"{BASE}/propagation?limit=1")).json()["changes"]) == 1
    elsewhere = (await other_tenant.auditor.client.get(f"{BASE}/propagation")).json()["changes"]
    assert not any(change["topic"] == "switch" for change in elsewhere)


async def test_a_kill_switch_is_engaged_and_released_by_an_administrator_without_requests_left(
    platform: RunningPlatform, tenant: Tenant, models: dict[str, str]
) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    path = f"/v1/platform/tenants/{tenant.id}/entitlements"
    assert (await portal.patch(path, json={"custom_rate_limit_rpm": 1})).status_code == 200
    admin, user, switch = tenant.admin.client, tenant.user.client, f"{BASE}/models/{models['sandbox/echo']}"
    assert [(await admin.get(f"{BASE}/providers")).status_code for _ in range(2)] == [200, 429]
    for _ in range(2):
        assert (await admin.post(f"{switch}/disable", json={"reason": "other"})).status_code == 200
        assert (await admin.post(f"{BASE}/providers/sandbox/enable")).status_code == 200
    # For callers without the right it is limited like every other path.
    refused = [(await user.post(f"{switch}/disable", json={"reason": "other"})).status_code for _ in range(2)]
    assert refused == [403, 429]
