"""Share links (docs/conversations.md, "Sharing")."""

from uuid import UUID, uuid4

import pytest
from tests.platform.conversations.conftest import BASE, Begin, add_dlp_rule, stored
from tests.support.platform import RunningPlatform, Tenant
from tests.support.values import shows

from gatehouse.platform.installation.resealing import SEALED

SHARED = f"{BASE}/shared"


@pytest.fixture
async def path(tenant_with_models: Tenant, begin: Begin) -> str:
    """A conversation with one question and its answer."""
    path = await begin(title="Gates")
    await tenant_with_models.user.client.post(f"{path}/messages", json={"content": "hello"})
    return path


async def test_anybody_can_read_a_conversation_by_its_share_link(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    answer = await tenant_with_models.user.client.post(f"{path}/share_links")
    assert answer.status_code == 201
    link = answer.json()
    assert UUID(link["token"]).version == 4
    assert (link["conversation_id"], link["revoked"]) == (path.rpartition("/")[2], False)
    assert link["url"] == f"http://gatehouse.test{SHARED}/{link['token']}"
    shown = await platform.anonymous.get(link["url"])
    assert shown.status_code == 200
    body = shown.json()
    assert (body["title"], body["model"], body["has_more"]) == ("Gates", "sandbox/echo", False)
    assert body.keys() == {"title", "model", "created_at", "updated_at", "messages", "next_cursor", "has_more"}
    assert body["messages"][0].keys() == {"role", "status", "content", "model", "created_at"}
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("user", "hello"),
        ("assistant", "hello"),
    ]
    for secret in (
        str(tenant_with_models.user.id),
        str(tenant_with_models.id),
        tenant_with_models.user.email,
        path.rpartition("/")[2],
    ):
        assert secret not in shown.text
    (event,) = await platform.audit(tenant_with_models, "share_link.created")
    assert (event["resource_id"], link["token"] in str(event)) == (link["id"], False)


async def test_a_link_shows_later_messages_page_by_page(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    await tenant_with_models.user.client.post(f"{path}/messages", json={"content": "later"})
    first = (await platform.anonymous.get(link["url"], params={"limit": 3})).json()
    query = {"limit": 3, "cursor": first["next_cursor"]}
    rest = (await platform.anonymous.get(link["url"], params=query)).json()
    assert [item["content"] for item in first["messages"] + rest["messages"]] == ["hello", "hello", "later", "later"]
    assert rest["has_more"] is False


async def test_a_link_shows_labels_instead_of_values(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    await add_dlp_rule(platform, tenant_with_models, reversible=True)
    path = await begin()
    await tenant_with_models.user.client.post(f"{path}/messages", json={"content": "card 4242 4242 4242 4242"})
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    shown = (await platform.anonymous.get(link["url"])).text
    assert ("[CREDIT_CARD_1]" in shown, shows(shown, "4242")) == (True, False)


async def test_a_revoked_link_shows_nothing_and_remains_in_the_list(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    client = tenant_with_models.user.client
    first, second = [(await client.post(f"{path}/share_links")).json() for _ in range(2)]
    for _ in range(2):
        assert (await client.delete(f"{path}/share_links/{first['id']}")).status_code == 204
    gone = await platform.anonymous.get(first["url"])
    assert (gone.status_code, gone.json()) == (404, {"detail": "Share link not found"})
    assert (await platform.anonymous.get(second["url"])).status_code == 200
    assert (await client.get(f"{path}/share_links")).json() == [{**first, "revoked": True}, second]
    assert len(await platform.audit(tenant_with_models, "share_link.revoked")) == 1


async def test_the_list_has_only_the_valid_or_the_revoked_links(tenant_with_models: Tenant, path: str) -> None:
    client = tenant_with_models.user.client
    links = [(await client.post(f"{path}/share_links")).json() for _ in range(4)]
    await client.delete(f"{path}/share_links/{links[1]['id']}")
    valid = await client.get(f"{path}/share_links", params={"revoked": False, "limit": 1, "offset": 1})
    assert (valid.json(), valid.headers["x-total-count"]) == ([links[2]], "3")
    revoked = await client.get(f"{path}/share_links", params={"revoked": True})
    assert (revoked.json(), revoked.headers["x-total-count"]) == ([{**links[1], "revoked": True}], "1")
    refused = await client.get(f"{path}/share_links", params={"revoked": "perhaps"})
    assert (refused.status_code, "revoked" in refused.text) == (422, True)


async def test_a_link_can_be_revoked_by_its_token(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    client = tenant_with_models.user.client
    link, other = [(await client.post(f"{path}/share_links")).json() for _ in range(2)]
    assert (await client.delete(f"{path}/share_links/{link['token']}")).status_code == 204
    assert (await platform.anonymous.get(link["url"])).status_code == 404
    assert (await platform.anonymous.get(other["url"])).status_code == 200
    (event,) = await platform.audit(tenant_with_models, "share_link.revoked")
    assert (event["resource_id"], link["token"] in str(event)) == (link["id"], False)


async def test_a_deactivated_owners_links_show_nothing_until_they_are_back(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    user = f"/api/admin/users/{tenant_with_models.user.id}"
    assert (await tenant_with_models.admin.client.patch(user, json={"is_active": False})).status_code == 200
    assert (await platform.anonymous.get(link["url"])).status_code == 404
    await tenant_with_models.admin.client.patch(user, json={"is_active": True})
    assert (await platform.anonymous.get(link["url"])).status_code == 200


async def test_links_are_deleted_with_their_owner_conversation_or_organization(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client = tenant_with_models.user.client
    links = [(await client.post(f"{await begin()}/share_links")).json() for _ in range(3)]
    await client.delete(f"{BASE}/{links[0]['conversation_id']}")
    assert (await platform.anonymous.get(links[0]["url"])).status_code == 404
    platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [tenant_with_models.id])
    assert (await platform.anonymous.get(links[1]["url"])).status_code == 404
    platform.sql("UPDATE tenants SET deleted_at = NULL WHERE id = %s", [tenant_with_models.id])
    assert (await platform.anonymous.get(links[1]["url"])).status_code == 200
    assert (
        await tenant_with_models.admin.client.delete(f"/api/admin/users/{tenant_with_models.user.id}")
    ).status_code == 204
    assert (await platform.anonymous.get(links[1]["url"])).status_code == 404


async def test_the_database_does_not_contain_readable_tokens(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    assert link["token"] not in stored(platform, tenant_with_models.id)
    assert (await tenant_with_models.user.client.get(f"{path}/share_links")).json() == [link]


async def test_stored_keys_and_tokens_can_be_decrypted_as_the_master_keys_change_does(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    await tenant_with_models.user.client.post(f"{path}/share_links")
    for sealed in SEALED:
        if sealed.table in {"conversations", "share_links"}:
            query = f"SELECT id, {sealed.column} FROM {sealed.table} WHERE tenant_id = %s"
            ((row_id, text),) = platform.sql(query, [tenant_with_models.id])
            assert platform.host.sealer.open(text, context=sealed.context(row_id))


@pytest.mark.parametrize("token", [str(uuid4()), "x", "messages", "%00", "é" * 100, "a" * 5000])
async def test_an_invented_token_shows_nothing(platform: RunningPlatform, token: str) -> None:
    answer = await platform.anonymous.get(f"{SHARED}/{token}")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Share link not found"})


async def test_another_conversations_link_cannot_be_revoked_here(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str, begin: Begin
) -> None:
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    elsewhere = await begin()
    for missing in (link["id"], link["token"], uuid4()):
        answer = await tenant_with_models.user.client.delete(f"{elsewhere}/share_links/{missing}")
        assert (answer.status_code, answer.json()) == (404, {"detail": "Share link not found"})
    assert (await platform.anonymous.get(link["url"])).status_code == 200


async def test_a_link_gives_no_write_access(platform: RunningPlatform, tenant_with_models: Tenant, path: str) -> None:
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert (await platform.anonymous.request(method, link["url"])).status_code == 405


async def test_readers_are_limited_by_their_address(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    answer = await platform.anonymous.get(f"{SHARED}/{uuid4()}")
    assert answer.headers["X-RateLimit-Limit"] == "30"


async def test_a_browser_is_led_to_the_page_and_programs_get_json(
    platform: RunningPlatform, tenant_with_models: Tenant, path: str
) -> None:
    link = (await tenant_with_models.user.client.post(f"{path}/share_links")).json()
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    led = await platform.anonymous.get(link["url"], headers=browser)
    assert (led.status_code, led.headers["location"]) == (303, f"/console/shared/{link['token']}")
    assert led.headers["vary"] == "Accept"
    for accept in ("application/json", "*/*", "application/json, text/html;q=0.5"):
        shown = await platform.anonymous.get(link["url"], headers={"Accept": accept})
        assert (shown.status_code, shown.json()["title"], shown.headers["vary"]) == (200, "Gates", "Accept")
