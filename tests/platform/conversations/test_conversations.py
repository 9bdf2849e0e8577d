"""Creating, listing, changing and deleting conversations (docs/conversations.md)."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.platform.conversations.conftest import BASE, Begin, messages_of, stored
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.conversations.conversations import service


async def test_a_conversation_is_created_with_a_snapshot_of_its_model(tenant_with_models: Tenant) -> None:
    answer = await tenant_with_models.user.client.post(BASE, json={"title": "On gates", "model": "sandbox/echo"})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["title"], made["model"], made["message_count"]) == ("On gates", "sandbox/echo", 0)
    assert (made["model_snapshot"]["provider"], made["model_snapshot"]["model_id"]) == ("sandbox", "echo")
    assert (made["summary"], made["summarized_at"]) == (None, None)
    assert (await tenant_with_models.user.client.get(f"{BASE}/{made['id']}")).json() == made


async def test_a_bare_model_id_is_stored_under_its_full_name(tenant_with_models: Tenant) -> None:
    assert (await tenant_with_models.user.client.post(BASE, json={"model": "echo"})).json()["model"] == "sandbox/echo"


async def test_the_default_model_is_the_preferred_one_or_auto(tenant_with_models: Tenant) -> None:
    client = tenant_with_models.user.client
    first = (await client.post(BASE, json={})).json()
    assert (first["model"], first["model_snapshot"]) == ("auto", None)
    preferred = await client.put("/api/users/me/preferences", json={"default_model_id": "sandbox/echo"})
    assert preferred.status_code == 200, preferred.text
    assert (await client.post(BASE, json={})).json()["model"] == "sandbox/echo"


async def test_a_removed_preferred_model_is_replaced_by_auto(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    client = tenant_with_models.user.client
    assert (await client.put("/api/users/me/preferences", json={"default_model_id": "sandbox/echo"})).is_success
    platform.sql("UPDATE model_configs SET is_active = false WHERE tenant_id = %s", [tenant_with_models.id])
    platform.touch("policy", tenant_with_models.id)
    await platform.refresh()
    assert (await client.post(BASE, json={})).json()["model"] == "auto"


async def test_creation_is_announced_and_audited_without_the_title(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    path = await begin(title="Project Nightingale")
    (event,) = await platform.audit(tenant_with_models, "conversation.created")
    assert (event["resource_id"], event["actor_id"]) == (path.rpartition("/")[2], str(tenant_with_models.user.id))
    ((payload,),) = platform.sql(
        "SELECT payload FROM outbox WHERE tenant_id = %s AND event_type = 'new_conversation'", [tenant_with_models.id]
    )
    assert payload.pop("created_at").endswith("Z")
    assert payload == {
        "conversation_id": event["resource_id"],
        "user_id": str(tenant_with_models.user.id),
        "provider": "sandbox",
        "model": "echo",
    }
    assert "Nightingale" not in str(event)
    assert "Nightingale" not in stored(platform, tenant_with_models.id)


async def test_the_list_is_paged_by_latest_activity_first(tenant_with_models: Tenant, begin: Begin) -> None:
    client = tenant_with_models.user.client
    paths = [await begin(title=f"number {n}") for n in range(3)]
    await client.post(f"{paths[0]}/messages", json={"content": "again"})
    first = (await client.get(BASE, params={"limit": 2})).json()
    rest = (await client.get(BASE, params={"limit": 2, "offset": 2})).json()
    assert (first["total"], first["limit"], first["offset"]) == (3, 2, 0)
    listed = [item["title"] for item in first["conversations"] + rest["conversations"]]
    assert listed == ["number 0", "number 2", "number 1"]
    assert first["conversations"][0]["message_count"] == 2


async def test_a_search_finds_titles_regardless_of_case_and_of_no_other_user(
    tenant_with_models: Tenant, begin: Begin
) -> None:
    client, other = tenant_with_models.user.client, tenant_with_models.admin.client
    for title in ("Gates of Rome", "Walls of Rome", "Straße nach Rom", "100% certain"):
        await begin(title=title)
    await begin()
    await begin(other, title="Gates of Rome, for admins")
    for search, titles in (
        ("gates", ["Gates of Rome"]),
        ("OF ROME", ["Walls of Rome", "Gates of Rome"]),
        ("STRASSE", ["Straße nach Rom"]),
        ("0% c", ["100% certain"]),
        ("%", ["100% certain"]),
        ("Florence", []),
    ):
        matches = (await client.get(BASE, params={"search": search})).json()
        assert ([item["title"] for item in matches["conversations"]], matches["total"]) == (titles, len(titles)), search
    page = (await client.get(BASE, params={"search": "rom", "limit": 1, "offset": 1})).json()
    assert ([item["title"] for item in page["conversations"]], page["total"]) == (["Walls of Rome"], 3)
    assert (await client.get(BASE, params={"search": ""})).json()["total"] == 5


async def test_a_search_opens_a_bounded_number_of_titles(
    tenant_with_models: Tenant, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SEARCHED_CONVERSATIONS", 2)
    for title in ("Rome 1", "Rome 2", "Rome 3"):
        await begin(title=title)
    matches = (await tenant_with_models.user.client.get(BASE, params={"search": "rome"})).json()
    assert [item["title"] for item in matches["conversations"]] == ["Rome 3", "Rome 2"]


async def test_a_search_that_is_too_long_is_refused_by_name(tenant_with_models: Tenant) -> None:
    answer = await tenant_with_models.user.client.get(BASE, params={"search": "x" * 256})
    assert (answer.status_code, "search" in answer.text) == (422, True)


async def test_title_and_model_are_changed_and_null_removes_the_title(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin(title="old")
    changed = (await client.patch(path, json={"title": "new", "model": "stream-50"})).json()
    assert (changed["title"], changed["model"]) == ("new", "sandbox/stream-50")
    assert changed["model_snapshot"]["model_id"] == "stream-50"
    assert (await client.patch(path, json={"title": None})).json()["title"] is None
    assert (await client.patch(path, json={"model": "auto"})).json()["model_snapshot"] is None
    events = await platform.audit(tenant_with_models, "conversation.updated")
    assert [event["details"] for event in events] == [
        {"fields": ["model", "title"]}, {"fields": ["title"]}, {"fields": ["model"]},
    ]  # fmt: skip


async def test_the_snapshot_survives_the_catalog_entry(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    path = await begin()
    ((entry,),) = platform.sql(
        "SELECT id FROM model_configs WHERE tenant_id = %s AND model_id = 'echo'", [tenant_with_models.id]
    )
    assert (await tenant_with_models.admin.client.delete(f"/api/admin/models/catalog/{entry}")).status_code == 204
    client = tenant_with_models.user.client
    assert (await client.get(path)).json()["model_snapshot"]["model_id"] == "echo"
    refused = await client.post(f"{path}/messages", json={"content": "still there?"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


async def test_a_deleted_conversation_is_deleted_with_its_messages(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "hello"})
    assert (await client.delete(path)).status_code == 204
    assert (await client.get(path)).status_code == 404
    assert stored(platform, tenant_with_models.id) == ""
    assert len(await platform.audit(tenant_with_models, "conversation.deleted")) == 1


async def test_a_deleted_users_conversations_are_deleted(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    path = await begin()
    await tenant_with_models.user.client.post(f"{path}/messages", json={"content": "hello"})
    assert (
        await tenant_with_models.admin.client.delete(f"/api/admin/users/{tenant_with_models.user.id}")
    ).status_code == 204
    assert stored(platform, tenant_with_models.id) == ""


async def test_only_the_owner_sees_a_conversation(
    platform: RunningPlatform, tenant_with_models: Tenant, other_tenant: Tenant, begin: Begin
) -> None:
    path = await begin()
    strangers = (
        tenant_with_models.admin,
        tenant_with_models.auditor,
        other_tenant.user,
        other_tenant.admin,
        await platform.operator(),
    )
    for stranger in strangers:
        for method, rest, body in _OPERATIONS:
            answer = await stranger.client.request(method, path + rest, json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Conversation not found"}), (method, rest)
        assert (await stranger.client.get(BASE)).json()["total"] == 0
    assert (await tenant_with_models.user.client.get(path)).status_code == 200


_OPERATIONS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "", None), ("PATCH", "", {"title": "x"}), ("DELETE", "", None), ("GET", "/messages", None),
    ("POST", "/messages", {"content": "x"}), ("POST", "/summary", None), ("GET", "/share_links", None),
    ("POST", "/share_links", None), ("DELETE", f"/share_links/{uuid4()}", None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "rest", "body"), [("GET", "", None), ("POST", "", {}), *_OPERATIONS[3:]])
async def test_a_machine_cannot_have_conversations(
    platform: RunningPlatform, tenant_with_models: Tenant, method: str, rest: str, body: dict[str, Any] | None
) -> None:
    machine = await platform.new_m2m(tenant_with_models.id, "api:read", "api:write", "chat:write")
    path = f"{BASE}/{uuid4()}{rest}" if rest else BASE
    answer = await machine.request(method, path, json=body)
    assert (answer.status_code, "Only users have conversations" in answer.text) == (403, True)


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("api:read", {("GET", "")}),
        ("api:write", {("PATCH", "")}),
        ("chat:write", {("POST", "/messages")}),
    ],
)
async def test_a_key_may_only_do_what_its_scopes_permit(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, scope: str, allowed: set[tuple[str, str]]
) -> None:
    flag = "/api/v1/admin/org/feature-flags/api_key_scoping"
    assert (await tenant_with_models.admin.client.patch(flag, json={"enabled": True})).status_code == 200
    path = await begin()
    key = platform.client(await platform.new_key(tenant_with_models.user, scopes=[scope]))
    for method, rest, body in [_OPERATIONS[0], _OPERATIONS[1], _OPERATIONS[4]]:
        status = (await key.request(method, path + rest, json=body)).status_code
        assert (status != 403) == ((method, rest) in allowed), (method, rest, status)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"title": 5}, "title"),
        ({"model": "nobody/nothing"}, "model"),
        ({"model": ""}, "model"),
        ({"model": None, "titel": "x"}, "titel"),
    ],
)
async def test_a_bad_field_is_named(tenant_with_models: Tenant, body: dict[str, Any], field: str) -> None:
    answer = await tenant_with_models.user.client.post(BASE, json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", field]


async def test_an_update_to_a_forbidden_model_changes_nothing(tenant_with_models: Tenant, begin: Begin) -> None:
    path = await begin(title="kept")
    answer = await tenant_with_models.user.client.patch(path, json={"title": "lost", "model": "nobody/nothing"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "model"])
    assert (await tenant_with_models.user.client.get(path)).json()["title"] == "kept"


async def test_a_restricted_model_looks_like_an_unknown_one(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    platform.sql("UPDATE model_configs SET access = 'restricted' WHERE tenant_id = %s", [tenant_with_models.id])
    platform.touch("policy", tenant_with_models.id)
    await platform.refresh()
    client = tenant_with_models.user.client
    denied = await client.post(BASE, json={"model": "sandbox/echo"})
    absent = await client.post(BASE, json={"model": "sandbox/ohce"})
    assert denied.status_code == absent.status_code == 422
    assert denied.text.replace("echo", "ohce") == absent.text


async def test_messages_are_read_page_by_page(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    for n in range(3):
        await client.post(f"{path}/messages", json={"content": f"number {n}"})
    sequences: list[int] = []
    cursor: str | None = None
    for _ in range(3):
        page = (
            await client.get(f"{path}/messages", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        sequences += [message["sequence"] for message in page["messages"]]
        cursor = page["next_cursor"]
    assert (sequences, page["has_more"], cursor) == ([1, 2, 3, 4, 5, 6], False, None)
    other = await begin()
    assert await messages_of(client, other) == []
    first = (await client.get(f"{path}/messages", params={"limit": 2})).json()["next_cursor"]
    foreign = await client.get(f"{other}/messages", params={"cursor": first})
    assert (foreign.status_code, "cursor" in foreign.text) == (400, True)


async def test_without_a_credential_every_call_is_401(platform: RunningPlatform, begin: Begin) -> None:
    path = await begin()
    anonymous: httpx2.AsyncClient = platform.anonymous
    for method, rest, body in [("GET", "", None), *_OPERATIONS]:
        assert (await anonymous.request(method, path + rest, json=body)).status_code == 401
    assert (await anonymous.get(BASE)).status_code == 401
