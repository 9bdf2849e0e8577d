"""The console's screens in Chromium: the tasks of users, with mouse and keyboard."""

import asyncio
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import BrowserContext, Page, Route, expect
from psycopg.types.json import Jsonb
from tests.platform.console.conftest import (
    OtherUser,
    SignIn,
    api,
    call_model,
    enter_password,
    recorded_call,
)
from tests.support.accessibility import assert_accessible
from tests.support.chromium import PHONE, needs_chromium
from tests.support.members import code_of
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

CARD = "My card is 4242 4242 4242 4242."


async def create_key(page: Page, name: str) -> str:
    """Create a key on the page of keys and return it."""
    await page.get_by_role("button", name="Create key").first.click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_role("button", name="Create key").click()
    key = await dialog.get_by_label("Your new API key").inner_text()
    await dialog.get_by_role("button", name="Done").click()
    await expect(dialog).to_be_hidden()
    return key


def record(page: Page, model: str = "echo") -> Any:
    return page.get_by_role("button", name=re.compile(f"Request to {model}"))


# the journey --------------------------------------------------------------------------------------------------------


async def test_a_new_administrator_gets_to_the_first_recorded_request(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> None:
    ada = new_user("admin")
    await page.goto("/")
    await enter_password(page, ada.email)
    await expect(page).to_have_url(re.compile(r"/console$"))
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()

    await page.get_by_role("link", name="API keys").click()
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
    key = await create_key(page, "the first one")
    assert key.startswith("gk_")
    row = page.get_by_role("row", name=re.compile("the first one"))
    await expect(row).to_contain_text(key[:8])
    assert key not in await page.content()

    request_id = recorded_call(server, key, CARD)
    await page.get_by_role("link", name="Requests", exact=True).click()
    await record(page).first.click()
    detail = page.get_by_role("complementary", name="Request")
    await expect(detail).to_contain_text("Redacted")
    await expect(detail).to_contain_text(request_id)
    await expect(detail).to_contain_text("A test's admin")
    await expect(detail).to_contain_text("gateway.request")
    assert "4242 4242 4242 4242" not in await page.content()


# sign-in and sign-out -----------------------------------------------------------------------------------------------


async def test_sign_in_leads_back_to_the_page_that_was_opened(page: Page, new_user: Callable[[str], OtherUser]) -> None:
    who = new_user("admin")
    await page.goto("/console/requests?period=week&model=echo")
    await enter_password(page, who.email)
    await expect(page.get_by_role("button", name="Account")).to_be_visible()
    assert urlsplit(page.url).path == "/console/requests"
    assert parse_qs(urlsplit(page.url).query) == {"period": ["week"], "model": ["echo"]}
    await expect(page.get_by_label("Model", exact=True)).to_have_value("echo")


async def test_sign_out_ends_the_session(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    who = await sign_in()
    await page.get_by_role("button", name="Account").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("status")).to_have_text("You are signed out.")
    assert server.sql("SELECT revoked_reason FROM sessions WHERE user_id = %s", [who.id]) == [("logout",)]
    await page.goto("/console/keys")
    await expect(page.get_by_label("Password", exact=True)).to_be_visible()


async def test_a_session_that_ended_elsewhere_leads_to_sign_in(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in()
    await page.goto("/console/keys")
    await expect(page.get_by_role("heading", name="API keys", level=1)).to_be_visible()
    other = api(server, who)
    for session in other.get("/api/auth/sessions").json():
        if not session["current"]:
            other.delete(f"/api/auth/sessions/{session['id']}")
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_label("Password", exact=True)).to_be_visible()


async def test_no_secret_of_the_session_can_be_read_by_a_script(page: Page, sign_in: SignIn) -> None:
    await sign_in()
    assert await page.evaluate("document.cookie") == ""
    stored = await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "eyJ" not in stored


async def test_a_call_with_a_refused_token_is_repeated_with_a_new_token(page: Page, sign_in: SignIn) -> None:
    await sign_in()
    tokens: list[str | None] = []

    async def refuse_once(route: Route) -> None:
        tokens.append(await route.request.header_value("authorization"))
        if len(tokens) == 1:
            await route.fulfill(status=401, json={"detail": "The token is not valid."})
        else:
            await route.continue_()

    await page.route("**/api/auth/api-keys?*", refuse_once)
    await page.get_by_role("link", name="API keys").click()
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
    assert len(tokens) == 2
    assert tokens[0] != tokens[1]


async def test_a_call_that_needs_a_second_factor_continues_after_the_user_enters_it(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("user")
    client = api(server, who)
    secret = client.post("/api/auth/mfa/totp", json={}).json()["secret"]
    assert client.post("/api/auth/mfa/totp/confirm", json={"code": code_of(secret, -1)}).status_code == 200
    policy = {"enforcement_level": "required", "grace_period_hours": 0}
    server.sql("UPDATE tenants SET mfa_policy = %s WHERE id = %s", [Jsonb(policy), DEFAULT_TENANT])
    try:
        server.touch("tenant", DEFAULT_TENANT)
        server.settled()
        await page.goto("/console/keys")
        await enter_password(page, who.email)
        await page.get_by_label("Code from your authenticator app").fill(code_of(secret))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Account")).to_be_visible()
        server.sql("UPDATE sessions SET mfa_at = now() - interval '1 day' WHERE user_id = %s", [who.id])
        await page.reload()

        await page.get_by_role("button", name="Create key").first.click()
        await page.get_by_label("Name").fill("with a second factor")
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Confirm that it is you")
        await dialog.get_by_label("Code").fill("000000")
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("alert")).to_be_visible()
        await dialog.get_by_label("Code").fill(code_of(secret, 1))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog", name="Save your key")).to_be_visible()
    finally:
        server.sql("UPDATE tenants SET mfa_policy = '{}' WHERE id = %s", [DEFAULT_TENANT])
        server.touch("tenant", DEFAULT_TENANT)
        server.settled()


# keys ---------------------------------------------------------------------------------------------------------------


async def test_keys_are_disabled_enabled_and_deleted(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/keys")
    key = await create_key(page, "the build server")
    row = page.get_by_role("row", name=re.compile("the build server"))
    for action, status, answer in (("Disable", "Disabled", 401), ("Enable", "Active", 200)):
        await row.get_by_role("button", name="Actions for the build server").click()
        await page.get_by_role("menuitem", name=action).click()
        await expect(row).to_contain_text(status)
        assert call_model(server, key).status_code == answer
    await row.get_by_role("button", name="Actions for the build server").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete key").click()
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
    assert call_model(server, key).status_code == 401


@pytest.mark.parametrize("role", ["user", "auditor"])
async def test_the_list_shows_the_spend_of_each_key_in_this_month(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], role: str
) -> None:
    owner = await sign_in(role) if role == "user" else new_user("user")
    client = api(server, owner)
    used, _ = (
        client.post("/api/auth/api-keys", json={"description": f"{name} {owner.email}"}).json()
        for name in ("used", "unused")
    )
    server.sql(
        "INSERT INTO spend_deltas (tenant_id, day, user_id, api_key_id, requests, input_tokens, output_tokens,"
        " cached_tokens, cost_usd, records) VALUES (%s, (now() AT TIME ZONE 'UTC')::date, %s, %s, 1, 1, 1, 0, 12.5, 1)",
        [DEFAULT_TENANT, owner.id, used["id"]],
    )
    if role == "auditor":
        await sign_in(role)
    await page.goto("/console/keys?all=true" if role == "auditor" else "/console/keys")
    await expect(page.get_by_role("columnheader", name="Spent this month")).to_be_visible()
    for name, spent in (("used", "$12.50"), ("unused", "$0.00")):
        await expect(page.get_by_role("row", name=re.compile(f"^{name} {owner.email}"))).to_contain_text(spent)


async def test_a_key_is_created_by_keyboard_alone(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/keys")
    await page.get_by_role("button", name="Create key").first.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Name")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("Enter a name.")
    await page.keyboard.type("typed")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Save your key")).to_be_visible()
    # A secret that is shown once does not disappear when a key is pressed by accident.
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Your new API key")).to_be_visible()
    await page.get_by_role("button", name="Done").press("Enter")
    await expect(page.get_by_role("row", name=re.compile("typed"))).to_be_visible()
    await expect(page.get_by_role("button", name="Create key").first).to_be_focused()


async def test_the_apis_message_is_shown_at_the_field_that_it_names(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/keys")

    async def refuse(route: Route) -> None:
        fault = {"loc": ["body", "description"], "msg": "This name is not liked.", "type": "value_error"}
        await route.fulfill(status=422, json={"detail": [fault]})

    await page.get_by_role("button", name="Create key").first.click()
    await page.route("**/api/auth/api-keys", refuse)
    await page.get_by_label("Name").fill("x")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("This name is not liked.")
    await expect(page.get_by_label("Name")).to_have_attribute("aria-invalid", "true")


async def test_users_see_only_their_own_keys_and_auditors_cannot_change_others_keys(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    owner = new_user("user")
    api(server, owner).post("/api/auth/api-keys", json={"description": f"key of {owner.email}"})
    await sign_in("auditor", "/console/keys?all=true")
    row = page.get_by_role("row", name=re.compile(owner.email))
    await expect(row).to_contain_text("A test's user")
    await expect(row.get_by_role("button")).to_have_count(0)
    await page.get_by_label("Status").select_option("false")
    await expect(row).to_be_hidden()
    assert parse_qs(urlsplit(page.url).query) == {"all": ["true"], "enabled": ["false"]}

    await page.context.clear_cookies()
    await sign_in("user", "/console/keys?all=true")
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
    await expect(page.get_by_role("link", name="All keys")).to_have_count(0)


# requests -----------------------------------------------------------------------------------------------------------


async def test_records_are_filtered_opened_and_walked_through_by_keyboard(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("user", "/console/keys")
    key = await create_key(page, "three requests")
    ids = [recorded_call(server, key, f"Number {at}") for at in range(3)]
    recorded_call(server, key, model="sandbox/nothing")
    await page.goto("/console/requests")
    await expect(record(page)).to_have_count(3)
    await page.get_by_role("combobox", name="Model").fill("echo")
    await expect(page.get_by_role("option", name="echo")).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row")).to_have_count(4)

    await record(page).first.focus()
    await page.keyboard.press("Enter")
    detail = page.get_by_role("complementary", name="Request")
    await expect(detail).to_be_focused()
    await expect(detail).to_contain_text(ids[2])
    await page.keyboard.press("j")
    await expect(detail).to_contain_text(ids[1])
    await page.keyboard.press("k")
    await expect(detail).to_contain_text(ids[2])
    await page.keyboard.press("Escape")
    await expect(detail).to_be_hidden()
    await expect(record(page).first).to_be_focused()
    await page.get_by_role("button", name="Clear").click()
    await expect(page.get_by_role("row")).to_have_count(5)


async def test_a_link_to_a_record_opens_it_wherever_it_is_in_the_list(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("user", "/console/keys")
    key = await create_key(page, "a link")
    request_id = recorded_call(server, key)
    await page.goto("/console/requests")
    await record(page).click()
    link = page.url
    await page.goto(link + "&model=another")
    detail = page.get_by_role("complementary", name="Request")
    await expect(detail).to_contain_text(request_id)
    await page.goto(re.sub(r"record=[0-9a-f-]+", "record=0", link))
    await expect(detail.get_by_role("heading", name="This record is no longer there")).to_be_visible()


async def test_the_error_of_a_failed_call_is_shown_and_the_call_can_be_repeated(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await page.route("**/api/v1/usage/records*", lambda route: route.fulfill(status=403, json={"detail": "Not today."}))
    await page.get_by_role("link", name="Requests", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("Not today.")
    await assert_accessible(page)
    await page.unroute("**/api/v1/usage/records*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="No requests in this period")).to_be_visible()


async def test_a_loading_list_shows_that_it_loads(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    checked = asyncio.Event()

    async def wait(route: Route) -> None:
        await checked.wait()
        await route.continue_()

    await page.route("**/api/auth/api-keys?*", wait)
    await page.get_by_role("link", name="API keys").click()
    await expect(page.get_by_role("table", name="API keys")).to_have_attribute("aria-busy", "true")
    await assert_accessible(page)
    checked.set()
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()


# accessibility -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["admin", "auditor", "user"])
async def test_a_new_key_the_menu_of_the_account_and_a_missing_page_are_accessible(
    server: GatehouseServer, page: Page, sign_in: SignIn, role: str
) -> None:
    await sign_in(role)
    await assert_accessible(page)
    await page.get_by_role("link", name="API keys").click()
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Create key").first.click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_label("Name").fill("for axe")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Your new API key")).to_be_visible()
    await assert_accessible(page)
    key = await page.get_by_label("Your new API key").inner_text()
    await page.get_by_role("button", name="Done").click()
    await assert_accessible(page)
    recorded_call(server, key, CARD)
    await page.goto("/console/requests")
    await record(page).first.click()
    await expect(page.get_by_role("complementary", name="Request")).to_be_visible()
    await assert_accessible(page)
    await page.goto("/console")
    await expect(record(page).first).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Account").click()
    await expect(page.get_by_role("menu")).to_be_visible()
    await assert_accessible(page)
    await page.goto("/console/nothing")
    await expect(page.get_by_role("heading", name="There is no such page").first).to_be_visible()
    await assert_accessible(page)


async def test_the_theme_that_was_chosen_stays(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    light = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    await page.get_by_role("button", name="Account").click()
    await page.get_by_role("menuitemradio", name="Dark").click()
    await page.reload()
    await expect(page.get_by_role("button", name="Account")).to_be_visible()
    assert await page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


async def test_a_phone_shows_the_overview_without_sideways_scrolling(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin")
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await expect(page.get_by_role("button", name="Open navigation")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await page.get_by_role("button", name="Open navigation").click()
    await page.get_by_role("link", name="API keys").click()
    await expect(page.get_by_role("heading", name="API keys", level=1)).to_be_visible()
    await assert_accessible(page)


async def test_the_policy_keeps_text_from_becoming_markup_or_code(context: BrowserContext) -> None:
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    # The browser displays this file as text, without the console's scripts, but under the console's security policy.
    await page.goto("/console/theme.js")
    for attack in (
        "document.createElement('div').innerHTML = '<img src=x onerror=alert(1)>'",
        "document.createElement('script').src = '/console/theme.js'",
        "document.write('x')",
        "setTimeout('1', 0)",
    ):
        made = await page.evaluate(f"() => {{ try {{ {attack}; return true; }} catch {{ return false; }} }}")
        assert made is False, attack
    assert len(complaints) >= 4
