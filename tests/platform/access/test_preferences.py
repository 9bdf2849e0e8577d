"""Users' preferences and pictures (docs/preferences.md)."""

import asyncio
from io import BytesIO
from typing import Any

import httpx2
import pytest
from PIL import Image
from tests.support.platform import Person, RunningPlatform, Tenant

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access.preferences.table import StoredPreferences, preferences

MINE = "/api/users/me/preferences"
AVATAR = "/api/users/me/avatar"
DEFAULTS = {
    "default_model_id": None, "preferred_models": [], "default_summarizer_model_id": None, "theme": "system",
    "avatar_url": None,
}  # fmt: skip
MEGABYTE = 1024 * 1024


def picture(colour: str = "red", kind: str = "PNG", size: tuple[int, int] = (300, 200)) -> bytes:
    out = BytesIO()
    Image.new("RGB", size, colour).save(out, kind)
    return out.getvalue()


async def upload(
    client: httpx2.AsyncClient, content: bytes, path: str = AVATAR, *, name: str = "me.png", kind: str = "image/png"
) -> httpx2.Response:
    return await client.patch(path, files={"file": (name, content, kind)})


async def put(person: Person, **body: Any) -> dict[str, Any]:
    answer = await person.client.put(MINE, json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


# preferences ---------------------------------------------------------------------------------------------------------


async def test_unset_preferences_have_their_defaults(tenant: Tenant) -> None:
    assert (await tenant.user.client.get(MINE)).json() == DEFAULTS


async def test_an_update_is_merged(platform: RunningPlatform, tenant: Tenant) -> None:
    first = await put(tenant.user, default_model_id="a/m", preferred_models=["a/m", "b/n"])
    assert first == {**DEFAULTS, "default_model_id": "a/m", "preferred_models": ["a/m", "b/n"]}
    second = await put(tenant.user, theme="dark", default_summarizer_model_id="b/n")
    assert second == {**first, "theme": "dark", "default_summarizer_model_id": "b/n"}
    third = await put(tenant.user, default_model_id=None, preferred_models=[])
    assert third == {**second, "default_model_id": None, "preferred_models": []}
    assert (await tenant.user.client.get(MINE)).json() == third
    # The preferences of another user are unchanged.
    assert (await tenant.admin.client.get(MINE)).json() == DEFAULTS
    events = await platform.audit(tenant, "user.preferences_changed")
    assert [event["details"] for event in events] == [
        {"default_model_id": "a/m", "preferred_models": ["a/m", "b/n"]},
        {"theme": "dark", "default_summarizer_model_id": "b/n"},
        {"default_model_id": None, "preferred_models": []},
    ]
    assert {event["resource_id"] for event in events} == {str(tenant.user.id)}


async def test_an_update_that_changes_nothing_is_not_audited(platform: RunningPlatform, tenant: Tenant) -> None:
    assert await put(tenant.user) == DEFAULTS
    assert await put(tenant.user, theme="system", preferred_models=[], default_model_id=None) == DEFAULTS
    assert await platform.audit(tenant, "user.preferences_changed") == []


async def test_concurrent_updates_are_not_lost(tenant: Tenant) -> None:
    for number in range(5):
        await asyncio.gather(
            put(tenant.user, default_model_id=f"a/{number}"), put(tenant.user, preferred_models=[f"b/{number}"])
        )
        now = (await tenant.user.client.get(MINE)).json()
        assert (now["default_model_id"], now["preferred_models"]) == (f"a/{number}", [f"b/{number}"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"avatar_url": "https://elsewhere.test/x.png"}, ["avatar_url"]),
        ({"theme": "blue"}, ["theme"]),
        ({"theme": None}, ["theme"]),
        ({"preferred_models": None}, ["preferred_models"]),
        ({"preferred_models": "a/m"}, ["preferred_models"]),
        ({"preferred_models": ["a/m"] * 101}, ["preferred_models"]),
        ({"preferred_models": ["a/m", ""]}, ["preferred_models", 1]),
        ({"default_model_id": ""}, ["default_model_id"]),
        ({"default_model_id": "x" * 320}, ["default_model_id"]),
        ({"default_model_id": "a/\0"}, ["default_model_id"]),
        ({"default_summarizer_model_id": 5}, ["default_summarizer_model_id"]),
        ({"colour": "blue"}, ["colour"]),
    ],
)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, object], field: list[object]) -> None:
    answer = await tenant.user.client.put(MINE, json=body)
    assert answer.status_code == 422, answer.text
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["body", *field]]
    assert (await tenant.user.client.get(MINE)).json() == DEFAULTS


async def test_other_modules_read_preferences_with_defaults(platform: RunningPlatform, tenant: Tenant) -> None:
    await put(tenant.user, default_model_id="a/m", preferred_models=["a/m"])
    async with platform.host.database.tenant(TenantId(tenant.id)) as session:
        assert await preferences(session, tenant.user.id) == StoredPreferences("a/m", ("a/m",))
        assert await preferences(session, tenant.admin.id) == StoredPreferences()


async def test_preferences_are_deleted_with_their_user(platform: RunningPlatform, tenant: Tenant) -> None:
    await put(tenant.user, theme="dark")
    await upload(tenant.user.client, picture())
    assert (await tenant.admin.client.delete(f"/api/admin/users/{tenant.user.id}")).status_code == 204
    for table in ("user_preferences", "user_avatars"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    assert (await tenant.admin.client.get(f"/api/users/{tenant.user.id}/avatar")).status_code == 404


# pictures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
async def test_a_picture_is_set_read_and_removed(platform: RunningPlatform, tenant: Tenant, kind: str) -> None:
    answer = await upload(tenant.user.client, picture(kind=kind))
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown == {**DEFAULTS, "avatar_url": shown["avatar_url"]}
    assert (await tenant.user.client.get(MINE)).json() == shown
    response = await tenant.auditor.client.get(shown["avatar_url"])
    assert (response.status_code, response.headers["content-type"]) == (200, "image/png")
    assert (response.headers["x-content-type-options"], response.headers["content-security-policy"]) == (
        "nosniff", "default-src 'none'; sandbox",
    )  # fmt: skip
    image = Image.open(BytesIO(response.content))
    assert (image.format, image.size) == ("PNG", (256, 256))
    assert (await tenant.user.client.delete(AVATAR)).status_code == 204
    assert (await tenant.user.client.get(MINE)).json() == DEFAULTS
    assert (await tenant.auditor.client.get(shown["avatar_url"])).status_code == 404
    # A second removal changes nothing.
    assert (await tenant.user.client.delete(AVATAR)).status_code == 204
    (set_event,) = await platform.audit(tenant, "user.avatar_set")
    assert (set_event["resource_id"], shown["avatar_url"].endswith(set_event["details"]["digest"])) == (
        str(tenant.user.id), True,
    )  # fmt: skip
    assert len(await platform.audit(tenant, "user.avatar_removed")) == 1


async def test_one_of_several_concurrent_removals_is_audited(platform: RunningPlatform, tenant: Tenant) -> None:
    await upload(tenant.user.client, picture())
    answers = await asyncio.gather(*(tenant.user.client.delete(AVATAR) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {204}
    assert len(await platform.audit(tenant, "user.avatar_removed")) == 1


async def test_a_new_picture_has_a_new_url_and_the_same_picture_keeps_it(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    urls = [
        (await upload(tenant.user.client, picture(colour))).json()["avatar_url"] for colour in ("red", "blue", "blue")
    ]
    assert urls[0] != urls[1] == urls[2]
    assert len(await platform.audit(tenant, "user.avatar_set")) == 2


async def test_a_picture_is_cached_by_its_digest(tenant: Tenant) -> None:
    url = (await upload(tenant.user.client, picture())).json()["avatar_url"]
    unversioned_url = url.partition("?")[0]
    versioned, unversioned = await tenant.user.client.get(url), await tenant.user.client.get(unversioned_url)
    assert versioned.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert unversioned.headers["cache-control"] == "private, no-cache"
    assert versioned.headers["etag"] == unversioned.headers["etag"]
    for etag in (versioned.headers["etag"], f"W/{versioned.headers['etag']}"):
        again = await tenant.user.client.get(unversioned_url, headers={"If-None-Match": etag})
        assert (again.status_code, again.content) == (304, b"")
    await upload(tenant.user.client, picture("blue"))
    changed = await tenant.user.client.get(unversioned_url, headers={"If-None-Match": versioned.headers["etag"]})
    assert (changed.status_code, changed.content != versioned.content) == (200, True)
    # The old URL returns the new picture, which must not be cached.
    assert (await tenant.user.client.get(url)).headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a" + b"\0" * 50]
)
async def test_a_file_that_is_not_a_picture_is_refused_whatever_its_name(tenant: Tenant, content: bytes) -> None:
    answer = await upload(tenant.user.client, content)
    assert answer.status_code == 400, answer.text
    assert answer.json()["detail"].startswith("file: this is neither a PNG nor a JPEG")


async def test_a_picture_is_recognized_by_its_content(tenant: Tenant) -> None:
    answer = await upload(tenant.user.client, picture(), name="me.txt", kind="text/plain")
    assert answer.status_code == 200


async def test_a_picture_has_at_most_one_megabyte(tenant: Tenant) -> None:
    # Decoders ignore data after the end of the picture.
    largest = picture().ljust(MEGABYTE, b"\0")
    assert (await upload(tenant.user.client, largest)).status_code == 200
    for content in (largest + b"\0", b"\0" * (MEGABYTE + 1), b"\0" * 3 * MEGABYTE):
        answer = await upload(tenant.user.client, content)
        assert answer.status_code == 413, answer.text
        assert str(MEGABYTE) in answer.json()["detail"]


async def test_a_malformed_form_gets_an_error_with_the_expected_format(tenant: Tenant) -> None:
    client = tenant.user.client
    for answer in (
        await client.patch(AVATAR, files={"picture": ("me.png", picture(), "image/png")}),
        await client.patch(AVATAR, data={"file": "text"}, files={"other": ("x", b"x")}),
    ):
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "file"])
    for request in (
        {"json": {"file": "x"}},
        {"content": picture(), "headers": {"content-type": "image/png"}},
        {"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=y"}},
        {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
        {},
    ):
        assert (await client.patch(AVATAR, **request)).status_code in {400, 422}


async def test_an_administrator_sets_a_users_picture(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    path = f"/api/admin/users/{tenant.user.id}/avatar"
    answer = await upload(tenant.admin.client, picture(), path)
    assert (answer.status_code, answer.json()) == (200, (await tenant.user.client.get(MINE)).json())
    assert f"/api/users/{tenant.user.id}/avatar?v=" in answer.json()["avatar_url"]
    (event,) = await platform.audit(tenant, "user.avatar_set")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), str(tenant.user.id))
    for client, status in (
        (platform.anonymous, 401),
        (tenant.user.client, 403),
        (tenant.auditor.client, 403),
        (other_tenant.admin.client, 404),
        (await platform.new_m2m(tenant.id, "admin:read", "api:write"), 403),
        (await platform.new_m2m(tenant.id, "admin:write"), 200),
    ):
        assert (await upload(client, picture(), path)).status_code == status
    assert (await upload(tenant.admin.client, b"x", path)).status_code == 400
    assert (await upload(tenant.admin.client, b"x" * 2 * MEGABYTE, path)).status_code == 413


async def test_only_callers_of_the_organization_see_a_picture(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    url = (await upload(tenant.user.client, picture())).json()["avatar_url"]
    for client, status in (
        (platform.anonymous, 401),
        (tenant.auditor.client, 200),
        (other_tenant.admin.client, 404),
        (await platform.new_m2m(tenant.id, "api:read"), 200),
        (await platform.new_m2m(tenant.id, "chat:write"), 403),
    ):
        assert (await client.get(url)).status_code == status


async def test_only_users_have_preferences(platform: RunningPlatform, tenant: Tenant) -> None:
    machine = await platform.new_m2m(tenant.id, "api:read", "api:write", "admin:write")
    for method, path in (("GET", MINE), ("PUT", MINE), ("PATCH", AVATAR), ("DELETE", AVATAR)):
        assert (await platform.anonymous.request(method, path)).status_code == 401
        assert (await machine.request(method, path, json={})).status_code == 403
    key = platform.client(await platform.new_key(tenant.user))
    assert (await key.put(MINE, json={"theme": "dark"})).status_code == 200
    assert (await tenant.user.client.get(MINE)).json()["theme"] == "dark"
