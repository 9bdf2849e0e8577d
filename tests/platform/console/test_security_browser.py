"""A user's own password, second factors and sessions in Chromium, with a virtual authenticator for passkeys."""

import re
from collections.abc import Callable

import httpx2
from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.members import code_of
from tests.support.platform import PASSWORD
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

NEW_PASSWORD = "a password that nobody else has"


async def open_security(page: Page) -> None:
    await page.get_by_role("button", name="Account").click()
    await page.get_by_role("menuitem", name="My security").click()
    await expect(page.get_by_role("heading", name="My security", level=1)).to_be_visible()


async def test_the_password_is_changed_and_other_sessions_end(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    other = api(server, who)
    await open_security(page)
    sessions = page.get_by_role("region", name="Sessions")
    await expect(sessions.get_by_role("listitem")).to_have_count(2)
    await expect(sessions).to_contain_text("Chrome · Linux")
    await expect(sessions).to_contain_text("python-httpx")
    await check_screen(page)
    await page.get_by_role("button", name="Change password").click()
    dialog = modal(page)
    await dialog.get_by_label("Current password").fill("wrong one")
    await dialog.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
    await dialog.get_by_label("New password again").fill("another")
    await dialog.get_by_role("button", name="Change password").click()
    await expect(dialog.get_by_role("alert")).to_have_text("The two passwords are not the same.")
    await dialog.get_by_label("New password again").fill(NEW_PASSWORD)
    await dialog.get_by_role("button", name="Change password").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await assert_accessible(page)
    await dialog.get_by_label("Current password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Change password").click()
    await expect(dialog).to_be_hidden()
    await expect(sessions.get_by_role("listitem")).to_have_count(1)
    assert other.get("/api/auth/sessions").status_code == 401
    for password, status in ((PASSWORD, 401), (NEW_PASSWORD, 200)):
        login = {"email": who.email, "password": password}
        assert httpx2.post(f"{server.url}/api/auth/login", json=login).status_code == status


async def test_a_user_of_single_sign_on_is_not_asked_for_a_password(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    server.sql("UPDATE users SET password_hash = NULL WHERE id = %s", [who.id])
    await page.goto("/console/security")
    await expect(page.get_by_role("region", name="Password")).to_contain_text("You have no password")
    await expect(page.get_by_role("button", name="Change password")).to_have_count(0)


async def test_another_session_is_ended(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    who = await sign_in("user", "/console/security")
    other = api(server, who)
    await page.reload()
    await page.get_by_role("button", name="End session").click()
    await modal(page).get_by_role("button", name="End session").click()
    await expect(page.get_by_role("button", name="End session")).to_have_count(0)
    assert other.get("/api/auth/sessions").status_code == 401


async def test_an_authenticator_app_is_set_up_with_recovery_codes_and_removed(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("user", "/console/security")
    await page.get_by_role("button", name="Set up an authenticator app").click()
    dialog = modal(page)
    secret = await dialog.get_by_label("Secret for the app").inner_text()
    code = dialog.get_by_role("img", name="QR code with the secret below")
    await expect(code).to_be_visible()
    assert await code.evaluate("(image) => image.complete && image.naturalWidth > 0")
    await assert_accessible(page)
    await dialog.get_by_label("Code").fill("000000")
    await dialog.get_by_role("button", name="Confirm").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await dialog.get_by_label("Code").fill(code_of(secret))
    await dialog.get_by_role("button", name="Confirm").click()
    codes = (await dialog.get_by_label("Recovery codes").inner_text()).split()
    assert len(codes) > 5
    await dialog.get_by_role("button", name="Done").click()
    factors = page.get_by_role("region", name="Second factors")
    await expect(factors).to_contain_text(f"{len(codes)} are left.")
    assert secret not in await page.content()
    await check_screen(page)
    await page.get_by_role("button", name="Remove the authenticator app").click()
    await modal(page).get_by_role("button", name="Remove app").click()
    await expect(page.get_by_role("button", name="Set up an authenticator app")).to_be_visible()


async def test_a_passkey_is_added_used_for_a_step_up_and_removed(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    devices = await page.context.new_cdp_session(page)
    await devices.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    await devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    url = server.url.replace("127.0.0.1", "localhost")
    who = new_user("user")
    await page.goto(f"{url}/console/security")
    await page.get_by_label("E-mail or user name").fill(who.email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Add passkey").click()
    dialog = modal(page)
    await dialog.get_by_label("Name").fill("this laptop")
    await dialog.get_by_role("button", name="Add passkey").click()
    await dialog.get_by_label("Recovery codes").wait_for()
    await dialog.get_by_role("button", name="Done").click()
    remove = page.get_by_role("button", name="Remove passkey this laptop")
    await expect(remove).to_be_visible()
    await check_screen(page)

    server.sql("UPDATE sessions SET mfa_at = now() - interval '1 day' WHERE user_id = %s", [who.id])
    await page.reload()
    await remove.click()
    await dialog.get_by_role("button", name="Remove passkey").click()
    step_up = page.get_by_role("dialog", name="Confirm that it is you")
    await step_up.get_by_role("button", name="Use a passkey").click()
    await expect(step_up).to_be_hidden()
    await expect(remove).to_have_count(0)
    assert re.search("localhost", page.url)
