"""Access requests (docs/access-requests.md)."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.platform.governance.access_requests import service

OWN = "/api/access-requests"
ALL = "/api/admin/access-requests"
MODEL = "closed/echo"
FOR_MODEL = {"kind": "model", "model": MODEL, "reason": "Translations."}
FOR_LIMIT = {"kind": "limit", "period": "month", "limit_usd": 200, "reason": "A large translation."}
NO_LIMITS = {"limit_usd": None, "limit_requests": None, "limit_tokens": None}


@pytest.fixture
async def catalog(platform: RunningPlatform, tenant: Tenant) -> None:
    """Add two restricted models, an open model, and an inactive model."""
    await platform.add_provider(tenant.id, "closed", "sandbox", "echo", "small", "open", "old")
    platform.sql(
        "UPDATE model_configs SET access = 'restricted', is_active = model_id <> 'old'"
        " WHERE tenant_id = %s AND provider = 'closed' AND model_id <> 'open'",
        [tenant.id],
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()


async def request(person: Person, **fields: Any) -> dict[str, Any]:
    answer = await person.client.post(OWN, json=fields)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def approve(tenant: Tenant, created: dict[str, Any], **body: Any) -> httpx2.Response:
    return await tenant.admin.client.post(f"{ALL}/{created['id']}/approve", json=body)


async def new_group(tenant: Tenant, name: str, access_type: str | None, *members: UUID, **fields: Any) -> str:
    """Create a group with a rule for the model."""
    groups = "/api/admin/groups"
    group_id: str = (await tenant.admin.client.post(groups, json={"name": name, **fields})).json()["id"]
    if access_type is not None:
        rule = {"model_id": MODEL, "access_type": access_type}
        assert (await tenant.admin.client.post(f"{groups}/{group_id}/model-access", json=rule)).status_code == 201
    for member in members:
        await tenant.admin.client.post(f"{groups}/{group_id}/members", json={"user_id": str(member)})
    return group_id


async def call_status(person: Person) -> int:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    return (await person.client.post("/v1/chat/completions", json=body)).status_code


async def requestable(person: Person, **query: Any) -> list[str]:
    page = (await person.client.get(f"{OWN}/models", params=query)).json()
    assert page["total"] >= len(page["items"])
    return [item["model"] for item in page["items"]]


async def budgets_of(tenant: Tenant) -> list[dict[str, Any]]:
    query = {"scope_type": "user", "scope_id": str(tenant.user.id)}
    budgets: list[dict[str, Any]] = (await tenant.admin.client.get("/api/admin/budgets", params=query)).json()["items"]
    return budgets


# creation -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("catalog")
async def test_the_person_and_administrators_read_the_created_request(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await request(tenant.user, **FOR_MODEL)
    assert created == {
        **NO_LIMITS, **FOR_MODEL, "id": created["id"], "user_id": str(tenant.user.id), "period": None,
        "status": "pending", "granted": None, "created_at": created["created_at"], "decided_at": None,
        "decided_by": None, "decision_reason": None,
    }  # fmt: skip
    for client, path in ((tenant.user.client, OWN), (tenant.auditor.client, ALL)):
        page = (await client.get(path)).json()
        assert page == {"items": [created], "total": 1, "page": 1, "page_size": 50}
    (event,) = await platform.audit(tenant, "access_request.created")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.user.id), created["id"])
    assert (event["reason"], event["details"]["model"]) == ("Translations.", MODEL)


@pytest.mark.usefixtures("catalog")
async def test_lists_are_paged_and_filtered_and_users_see_only_their_own_requests(
    tenant: Tenant, other_tenant: Tenant
) -> None:
    first = await request(tenant.user, **FOR_MODEL)
    second = await request(tenant.user, **FOR_LIMIT)
    of_auditor = await request(tenant.auditor, **FOR_LIMIT)
    await request(other_tenant.user, **FOR_LIMIT)
    assert (await tenant.user.client.delete(f"{OWN}/{first['id']}")).status_code == 204

    async def listed(person: Person, path: str, **query: Any) -> tuple[list[str], int]:
        page = (await person.client.get(path, params=query)).json()
        return [item["id"] for item in page["items"]], page["total"]

    assert await listed(tenant.user, OWN) == ([second["id"], first["id"]], 2)
    assert await listed(tenant.user, OWN, status="withdrawn") == ([first["id"]], 1)
    assert await listed(tenant.admin, ALL, status="pending") == ([of_auditor["id"], second["id"]], 2)
    assert await listed(tenant.admin, ALL, page=2, page_size=2) == ([first["id"]], 3)
    assert await listed(tenant.admin, OWN) == ([], 0)


@pytest.mark.usefixtures("catalog")
async def test_the_list_of_models_that_a_person_can_request(tenant: Tenant) -> None:
    assert await requestable(tenant.user) == ["closed/echo", "closed/small"]
    assert await requestable(tenant.user, search="ECHO") == [MODEL]
    assert await requestable(tenant.user, page=2, page_size=1) == ["closed/small"]
    created = await request(tenant.user, **FOR_MODEL)
    assert await requestable(tenant.user) == ["closed/small"]
    assert await requestable(tenant.auditor) == ["closed/echo", "closed/small"]
    await tenant.user.client.delete(f"{OWN}/{created['id']}")
    assert await requestable(tenant.user) == ["closed/echo", "closed/small"]
    # A model that a group of the person allows or denies cannot be requested.
    for access_type in ("ALLOW", "DENY"):
        group_id = await new_group(tenant, access_type, access_type, tenant.user.id)
        assert await requestable(tenant.user) == ["closed/small"]
        answer = await tenant.user.client.post(OWN, json=FOR_MODEL)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "model"])
        await tenant.admin.client.delete(f"/api/admin/groups/{group_id}")


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**FOR_MODEL, "model": "closed/unknown"}, "model"),
        ({**FOR_MODEL, "model": "closed/open"}, "model"),
        ({**FOR_MODEL, "model": "closed/old"}, "model"),
        ({**FOR_MODEL, "model": None}, "model"),
        ({**FOR_MODEL, "period": "month"}, "period"),
        ({**FOR_MODEL, "limit_usd": 1}, "limit_usd"),
        ({**FOR_LIMIT, "model": MODEL}, "model"),
        ({**FOR_LIMIT, "period": None}, "period"),
        ({**FOR_LIMIT, "period": "year"}, "period"),
        ({**FOR_LIMIT, "limit_usd": None}, "limit_usd"),
        ({**FOR_LIMIT, "limit_usd": 0}, "limit_usd"),
        ({**FOR_LIMIT, "limit_tokens": 1.5}, "limit_tokens"),
        ({**FOR_LIMIT, "reason": " "}, "reason"),
        ({**FOR_LIMIT, "reason": "x" * 1_001}, "reason"),
        ({**FOR_LIMIT, "kind": "other"}, "kind"),
        ({**FOR_LIMIT, "unknown": 1}, "unknown"),
    ],
)
async def test_bad_input_is_422_with_the_name_of_the_field(tenant: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant.user.client.post(OWN, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])


@pytest.mark.usefixtures("catalog")
async def test_a_second_pending_request_for_the_same_model_or_limit_is_409(tenant: Tenant) -> None:
    for body in (FOR_MODEL, FOR_LIMIT):
        answers = await asyncio.gather(*(tenant.user.client.post(OWN, json=body) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    await request(tenant.user, **FOR_MODEL | {"model": "closed/small"})
    await request(tenant.user, **FOR_LIMIT | {"period": "day"})
    await request(tenant.auditor, **FOR_MODEL)


async def test_the_number_of_pending_requests_of_a_person_is_limited_also_for_concurrent_requests(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    platform.sql(
        "INSERT INTO access_requests (id, tenant_id, user_id, kind, model, reason)"
        " SELECT gen_random_uuid(), %s, %s, 'model', 'a/' || n, 'x' FROM generate_series(1, %s) AS n",
        [tenant.id, tenant.user.id, service.MAX_PENDING_PER_USER - 1],
    )
    bodies = [FOR_LIMIT | {"period": period} for period in ("minute", "day", "month")]
    answers = await asyncio.gather(*(tenant.user.client.post(OWN, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
    await request(tenant.auditor, **FOR_LIMIT)


async def test_the_oldest_final_requests_of_a_person_are_deleted(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_FINAL_PER_USER", 1)
    of_auditor = await request(tenant.auditor, **FOR_LIMIT)
    await tenant.auditor.client.delete(f"{OWN}/{of_auditor['id']}")
    for _ in range(3):
        created = await request(tenant.user, **FOR_LIMIT)
        await tenant.user.client.delete(f"{OWN}/{created['id']}")
    pending = await request(tenant.user, **FOR_LIMIT)
    page = (await tenant.admin.client.get(ALL)).json()
    assert [item["id"] for item in page["items"]] == [pending["id"], created["id"], of_auditor["id"]]


async def test_a_request_below_the_current_budget_is_422(tenant: Tenant) -> None:
    budget = {"scope_type": "user", "scope_id": str(tenant.user.id), "period": "month", "limit_usd": 300}
    await tenant.admin.client.post("/api/admin/budgets", json=budget)
    for fields, field in (({"limit_usd": 299}, "limit_usd"), ({"limit_usd": 400, "limit_tokens": 1}, "limit_tokens")):
        answer = await tenant.user.client.post(OWN, json=FOR_LIMIT | fields)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    await request(tenant.user, **FOR_LIMIT | {"limit_usd": 301})


async def test_a_withdrawn_request_is_final_and_only_its_person_withdraws(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await request(tenant.user, **FOR_LIMIT)
    for person in (tenant.auditor, tenant.admin):
        answer = await person.client.delete(f"{OWN}/{created['id']}")
        assert (answer.status_code, answer.json()) == (404, {"detail": "Access request not found"})
    assert (await tenant.user.client.delete(f"{OWN}/{created['id']}")).status_code == 204
    answer = await tenant.user.client.delete(f"{OWN}/{created['id']}")
    assert (answer.status_code, answer.json()["status"]) == (409, "withdrawn")
    answer = await approve(tenant, created)
    assert (answer.status_code, answer.json()["status"]) == (409, "withdrawn")
    assert await budgets_of(tenant) == []
    (event,) = await platform.audit(tenant, "access_request.withdrawn")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.user.id), created["id"])


# decisions ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("catalog")
async def test_an_approved_model_can_be_used_from_the_response_on(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_MODEL)
    assert await call_status(tenant.user) == 404
    answer = await approve(tenant, created, reason="Until May.")
    assert answer.status_code == 200, answer.text
    assert await call_status(tenant.user) == 200
    approved = answer.json()
    groups = (await tenant.admin.client.get("/api/admin/groups")).json()["groups"]
    assert [(group["name"], group["member_count"]) for group in groups] == [(f"Access to {MODEL}", 1)]
    assert approved["granted"] == {**NO_LIMITS, "group_id": groups[0]["id"], "group_name": f"Access to {MODEL}"}
    assert (approved["status"], approved["decided_by"]) == ("approved", str(tenant.admin.id))
    assert (await tenant.user.client.get(OWN)).json()["items"] == [approved]
    (event,) = await platform.audit(tenant, "access_request.approved")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), created["id"])
    assert (event["reason"], event["details"]["granted"]["group_id"]) == ("Until May.", groups[0]["id"])
    for action in ("group.created", "group.model_access_added", "group.member_added"):
        assert len(await platform.audit(tenant, action)) == 1


@pytest.mark.usefixtures("catalog")
async def test_concurrent_approvals_share_the_models_group(tenant: Tenant) -> None:
    requests = [await request(person, **FOR_MODEL) for person in (tenant.user, tenant.auditor)]
    answers = await asyncio.gather(*(approve(tenant, created) for created in requests))
    assert [answer.status_code for answer in answers] == [200, 200]
    (group,) = (await tenant.admin.client.get("/api/admin/groups")).json()["groups"]
    assert group["member_count"] == 2


@pytest.mark.usefixtures("catalog")
async def test_an_approval_can_name_a_group_that_allows_the_model(tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_MODEL)
    unusable = (
        str(uuid4()),
        await new_group(tenant, "no rule", None),
        await new_group(tenant, "denied", "DENY"),
        await new_group(tenant, "of the directory", "ALLOW", external_group_id="g-1"),
    )
    for group_id in unusable:
        answer = await approve(tenant, created, group_id=group_id)
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "group_id"])
    group_id = await new_group(tenant, "translators", "ALLOW")
    answer = await approve(tenant, created, group_id=group_id)
    assert (answer.status_code, answer.json()["granted"]["group_name"]) == (200, "translators")
    assert await call_status(tenant.user) == 200


@pytest.mark.usefixtures("catalog")
async def test_an_approval_is_409_if_a_group_of_the_person_denies_the_model(tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_MODEL)
    denying = await new_group(tenant, "contractors", "DENY", tenant.user.id)
    answer = await approve(tenant, created)
    assert (answer.status_code, answer.json()["code"], answer.json()["group"]) == (
        409, "denied_by_group", "contractors",
    )  # fmt: skip
    assert (await tenant.user.client.get(OWN)).json()["items"] == [created]
    groups = (await tenant.admin.client.get("/api/admin/groups")).json()["groups"]
    assert [group["name"] for group in groups] == ["contractors"]
    await tenant.admin.client.delete(f"/api/admin/groups/{denying}/members/{tenant.user.id}")
    assert (await approve(tenant, created)).status_code == 200


@pytest.mark.usefixtures("catalog")
async def test_an_approval_is_409_if_the_model_cannot_be_granted(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_MODEL)
    group_id = await new_group(tenant, f"Access to {MODEL}", None)
    answer = await approve(tenant, created)
    assert (answer.status_code, answer.json()["code"]) == (409, "group_without_rule")
    await tenant.admin.client.delete(f"/api/admin/groups/{group_id}")
    platform.sql("DELETE FROM model_configs WHERE tenant_id = %s AND model_id = 'echo'", [tenant.id])
    answer = await approve(tenant, created)
    assert (answer.status_code, answer.json()["code"]) == (409, "model_not_in_catalog")


async def test_an_approved_limit_creates_or_raises_the_persons_budget(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await request(tenant.user, **FOR_LIMIT, limit_tokens=1_000)
    answer = await approve(tenant, created, limit_usd=150.5, limit_tokens=None)
    assert answer.status_code == 200, answer.text
    granted = {"group_id": None, "group_name": None, **NO_LIMITS, "limit_usd": 150.5}
    assert answer.json()["granted"] == granted
    (budget,) = await budgets_of(tenant)
    assert (budget["period"], budget["limit_usd"], budget["limit_tokens"]) == ("month", 150.5, None)

    created = await request(tenant.user, **FOR_LIMIT)
    answer = await approve(tenant, created)
    assert answer.json()["granted"] == {**granted, "limit_usd": 200}
    (raised,) = await budgets_of(tenant)
    assert (raised["id"], raised["limit_usd"]) == (budget["id"], 200)
    details = [event["details"] for event in await platform.audit(tenant, "access_request.approved")]
    assert [item["granted"]["limit_usd"] for item in details] == ["150.5", "200"]


@pytest.mark.parametrize(
    ("fields", "body", "field"),
    [
        ({}, {"limit_usd": 99}, "limit_usd"),
        ({}, {"limit_requests": 5}, "limit_requests"),
        ({}, {"limit_usd": None}, "limit_usd"),
        ({}, {"group_id": str(uuid4())}, "group_id"),
        ({}, {"limit_usd": -1}, "limit_usd"),
        ({}, {"reason": "x" * 1_001}, "reason"),
        ({}, {"unknown": 1}, "unknown"),
    ],
)
async def test_an_approval_with_a_lower_limit_or_unsuitable_fields_is_422(
    tenant: Tenant, fields: dict[str, Any], body: dict[str, Any], field: str
) -> None:
    created = await request(tenant.user, **FOR_LIMIT | fields)
    budget = {"scope_type": "user", "scope_id": str(tenant.user.id), "period": "month", "limit_usd": 100}
    await tenant.admin.client.post("/api/admin/budgets", json=budget)
    answer = await approve(tenant, created, **body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    assert (await tenant.user.client.get(OWN)).json()["items"] == [created]
    assert [item["limit_usd"] for item in await budgets_of(tenant)] == [100]


@pytest.mark.usefixtures("catalog")
async def test_an_approval_of_a_model_with_limits_is_422(tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_MODEL)
    answer = await approve(tenant, created, limit_usd=1)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "limit_usd"])


async def test_a_denial_changes_no_budget_and_is_final(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_LIMIT)
    answer = await tenant.admin.client.post(f"{ALL}/{created['id']}/deny", json={"reason": "Too dear."})
    assert (answer.status_code, answer.json()["status"]) == (200, "denied")
    assert (await tenant.user.client.get(OWN)).json()["items"][0]["decision_reason"] == "Too dear."
    assert await budgets_of(tenant) == []
    for verb in ("approve", "deny"):
        answer = await tenant.admin.client.post(f"{ALL}/{created['id']}/{verb}")
        assert (answer.status_code, answer.json()["status"]) == (409, "denied")
    answer = await tenant.admin.client.post(f"{ALL}/{created['id']}/deny", json={"reason": "x" * 1_001})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "reason"])
    (event,) = await platform.audit(tenant, "access_request.denied")
    assert (event["actor_id"], event["reason"]) == (str(tenant.admin.id), "Too dear.")
    # The person can create a new request after the decision.
    await request(tenant.user, **FOR_LIMIT)


async def test_one_of_several_concurrent_decisions_is_stored(tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_LIMIT)
    answers = await asyncio.gather(
        *(tenant.admin.client.post(f"{ALL}/{created['id']}/{verb}", json={}) for verb in ("approve", "deny") * 3)
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 5]


# rights ---------------------------------------------------------------------------------------------------------------


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await request(tenant.user, **FOR_LIMIT)
    decisions = [f"{ALL}/{created['id']}/{verb}" for verb in ("approve", "deny")]
    paths = [("GET", OWN), ("POST", OWN), ("GET", f"{OWN}/models"), ("DELETE", f"{OWN}/{created['id']}"), ("GET", ALL)]
    for method, path in (*paths, *(("POST", path) for path in decisions)):
        assert (await platform.anonymous.request(method, path)).status_code == 401
    assert (await tenant.user.client.get(ALL)).status_code == 403
    for path in decisions:
        for person in (tenant.user, tenant.auditor):
            assert (await person.client.post(path)).status_code == 403
    machine = await platform.new_m2m(tenant.id, "admin:read", "admin:write", "api:read", "api:write")
    assert (await machine.get(ALL)).status_code == 200
    for method, path in paths[:4]:
        assert (await machine.request(method, path)).status_code == 403
    flag = "/api/v1/admin/org/feature-flags/api_key_scoping"
    assert (await tenant.admin.client.patch(flag, json={"enabled": True})).status_code == 200
    reading_key = platform.client(await platform.new_key(tenant.user, scopes=["api:read"]))
    assert (await reading_key.get(OWN)).status_code == 200
    assert (await reading_key.post(OWN, json=FOR_LIMIT)).status_code == 403
    writing_key = platform.client(await platform.new_key(tenant.user, scopes=["api:write"]))
    assert (await writing_key.post(OWN, json=FOR_LIMIT | {"period": "day"})).status_code == 201


async def test_a_request_of_another_organization_is_404(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await request(other_tenant.user, **FOR_LIMIT)
    for row_id in (theirs["id"], str(uuid4()), "x"):
        for method, path in (
            ("DELETE", f"{OWN}/{row_id}"), ("POST", f"{ALL}/{row_id}/approve"), ("POST", f"{ALL}/{row_id}/deny")
        ):  # fmt: skip
            answer = await tenant.admin.client.request(method, path)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Access request not found"})
    assert (await other_tenant.user.client.get(OWN)).json()["items"] == [theirs]


async def test_nobody_approves_their_own_request_and_the_attempt_is_audited(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await request(tenant.admin, **FOR_LIMIT)
    answer = await approve(tenant, created)
    assert (answer.status_code, answer.json()["code"]) == (403, "own_request")
    (event,) = await platform.audit(tenant, "access_request.refused")
    assert (event["outcome"], event["reason"], event["resource_id"]) == ("failure", "own_request", created["id"])
    assert (await tenant.admin.client.post(f"{ALL}/{created['id']}/deny")).status_code == 200


@pytest.mark.usefixtures("catalog")
async def test_machines_approve_only_if_the_settings_allow_it(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for_limit, for_model = await request(tenant.user, **FOR_LIMIT), await request(tenant.user, **FOR_MODEL)
    machine = await platform.new_m2m(tenant.id, "admin:write")
    answer = await machine.post(f"{ALL}/{for_limit['id']}/approve")
    assert (answer.status_code, answer.json()["code"]) == (403, "person_required")
    changed = platform.host.settings.model_copy(update={"approval_by_machines": True})
    monkeypatch.setattr(platform.host, "settings", changed)
    assert (await machine.post(f"{ALL}/{for_limit['id']}/approve")).status_code == 200
    # An approval of a model changes groups.
    answer = await machine.post(f"{ALL}/{for_model['id']}/approve")
    assert (answer.status_code, answer.json()["detail"]) == (403, "The credential lacks the scope groups:write.")
    machine = await platform.new_m2m(tenant.id, "admin:write", "groups:write")
    assert (await machine.post(f"{ALL}/{for_model['id']}/approve")).status_code == 200
