"""The form that creates and edits an API key."""

import re
from collections.abc import Callable

from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

FLAG = "/api/v1/admin/org/feature-flags/api_key_scoping"


async def edit(page: Page, name: str) -> None:
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name="Edit").click()
    await expect(modal(page).get_by_label("Name")).to_be_focused()


async def test_one_form_creates_and_edits_a_key(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin = api(server, new_user("admin"))
    client = api(server, await sign_in("user", "/console/keys"))
    await page.get_by_role("button", name="Create key").first.click()
    await modal(page).get_by_label("Name").fill("build server")
    await modal(page).get_by_label("Limit what the key may do").check()
    await modal(page).get_by_label("api:read").check()
    await modal(page).get_by_role("button", name="Create key").click()
    # The API's message appears at the field.
    await expect(modal(page).get_by_role("group", name="The key may").get_by_role("alert")).to_contain_text(
        "api_key_scoping"
    )
    admin.patch(FLAG, json={"enabled": True}).raise_for_status()
    try:
        await modal(page).get_by_role("button", name="Create key").click()
        await modal(page).get_by_role("button", name="Done").click()
        (created,) = client.get("/api/auth/api-keys").json()
        assert created["scopes"] == ["api:read"]

        await edit(page, "build server")
        await expect(modal(page).get_by_label("Expires after")).to_have_value("keep")
        await expect(modal(page).get_by_label("api:read")).to_be_checked()
        await assert_accessible(page)
        await modal(page).get_by_label("Name").fill("nightly build")
        await page.keyboard.press("Enter")
        row = page.get_by_role("row", name=re.compile("nightly build"))
        await expect(row).to_be_visible()
        (renamed,) = client.get("/api/auth/api-keys").json()
        assert renamed == {**created, "description": "nightly build", "updated_at": renamed["updated_at"]}

        await edit(page, "nightly build")
        await modal(page).get_by_label("Expires after").select_option("Never")
        await modal(page).get_by_label("chat:write").check()
        await modal(page).get_by_role("button", name="Save").click()
        await expect(modal(page)).to_be_hidden()
        (changed,) = client.get("/api/auth/api-keys").json()
        assert (changed["expires_at"], changed["scopes"]) == (None, ["api:read", "chat:write"])

        await edit(page, "nightly build")
        await modal(page).get_by_label("Limit what the key may do").uncheck()
        await modal(page).get_by_role("button", name="Save").click()
        await expect(modal(page)).to_be_hidden()
        assert client.get("/api/auth/api-keys").json()[0]["scopes"] is None
    finally:
        admin.patch(FLAG, json={"enabled": False}).raise_for_status()


async def test_an_administrator_edits_another_users_key(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    owner = api(server, new_user("user"))
    name = f"key of {new_user('user').email}"
    owner.post("/api/auth/api-keys", json={"description": name}).raise_for_status()
    await sign_in("admin", f"/console/keys?all=true&search={name}")
    await edit(page, name)
    await modal(page).get_by_label("Expires after").select_option("30 days")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(modal(page)).to_be_hidden()
    (key,) = owner.get("/api/auth/api-keys").json()
    assert (key["description"], key["expires_at"] is None) == (name, False)
    await page.get_by_role("link", name=name).click()
    await expect(page.get_by_role("combobox", name="API key")).to_have_value(name)
