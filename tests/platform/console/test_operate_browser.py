"""Groups, model access, budgets, webhooks and alerts in Chromium: the main task of each, by clicking."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import (
    TIERS,
    OtherUser,
    SignIn,
    api,
    call_model,
    check_paging,
    check_screen,
    modal,
    recorded_call,
)
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.receiver import HERE, Receiver, certificate
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

GROUPS = "/api/admin/groups"
BUDGETS = "/api/admin/budgets"
WEBHOOKS = "/api/admin/webhooks/"
ALERTS = "/api/alerts"
CATALOG = "/api/admin/models/catalog/"


@pytest.fixture(scope="module")
def server(console: Path) -> Iterator[GatehouseServer]:
    """A server that may reach receivers on this machine."""
    env = {"RATE_LIMIT_TIERS": TIERS, "EGRESS_ALLOWLIST": ",".join(HERE), "SSL_CERT_FILE": str(certificate())}
    with GatehouseServer(env=env) as running:
        yield running


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> httpx2.Client:
    return api(server, new_user("admin"))


async def choose(page: Page, name: str, item: str) -> None:
    """Choose an item of the menu in the row with this name."""
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name=item).click()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def new_name(kind: str) -> str:
    return f"{kind} {uuid4().hex[:8]}"


def new_group(admin: httpx2.Client, name: str) -> str:
    created = admin.post(GROUPS, json={"name": name})
    assert created.status_code == 201, created.text
    return str(created.json()["id"])


# groups -------------------------------------------------------------------------------------------------------------


async def test_a_group_is_created_gets_members_and_is_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], admin: httpx2.Client
) -> None:
    who, name, taken = new_user("user"), new_name("Payments"), new_name("Taken")
    new_group(admin, taken)
    await sign_in("admin", "/console/groups")
    await page.get_by_role("button", name="New group").click()
    dialog = modal(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a name.")
    await dialog.get_by_label("Name").fill(taken)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("already")
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label("Description").fill("Who works on payments")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_contain_text("Who works on payments")

    await page.get_by_role("button", name=f"Members of “{name}”").press("Enter")
    assert "group=" in page.url
    await expect(dialog).to_contain_text("The group has no members")
    await dialog.get_by_label("Add a member").fill(who.email)
    await dialog.get_by_role("button", name="Add A test's user").press("Enter")
    members = dialog.get_by_role("list", name="Members")
    await expect(members).to_contain_text(who.email)
    await expect(dialog.get_by_role("button", name="Add A test's user")).to_have_count(0)
    await check_screen(page)
    query = "SELECT count(*) FROM group_members WHERE user_id = %s"
    assert server.sql(query, [who.id]) == [(1,)]
    await dialog.get_by_role("button", name=f"Remove {who.email}").click()
    await expect(dialog).to_contain_text("The group has no members")
    assert server.sql(query, [who.id]) == [(0,)]
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()

    await page.get_by_label("Search").fill(name)
    await page.keyboard.press("Enter")
    await expect(row(page, taken)).to_have_count(0)
    await check_screen(page)
    await choose(page, name, "Edit")
    renamed = new_name("Payroll")
    await dialog.get_by_label("Name").fill(renamed)
    await dialog.get_by_label("Description").fill("")
    await dialog.get_by_role("button", name="Save").click()
    await page.get_by_role("button", name="Clear").first.click()
    await expect(row(page, renamed)).to_be_visible()
    await choose(page, renamed, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, renamed)).to_have_count(0)
    names = [group["name"] for group in admin.get(GROUPS).json()["groups"]]
    assert renamed not in names
    assert taken in names


async def test_groups_are_paged_sorted_and_searched_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    mark = new_name("Many")
    ids = [new_group(admin, f"{mark} {number:02}") for number in range(52)]
    try:
        await sign_in("auditor", f"/console/groups?search={mark.replace(' ', '+')}&group={ids[-1]}")
        await expect(modal(page)).to_contain_text("The group has no members")
        await page.keyboard.press("Escape")
        await check_paging(page, "Groups", mark, total=52, by_name=True)
    finally:
        server.sql("DELETE FROM groups WHERE name LIKE %s", [f"{mark}%"])


async def test_a_dialog_stays_open_when_its_row_moves_to_another_page(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], admin: httpx2.Client
) -> None:
    who, mark = new_user("user"), new_name("Moves")
    ids = [new_group(admin, f"{mark} {number:02}") for number in range(51)]
    try:
        await sign_in("admin", f"/console/groups?search={mark.replace(' ', '+')}&sort=member_count&group={ids[0]}")
        dialog = modal(page)
        await expect(dialog).to_contain_text("The group has no members")
        await dialog.evaluate("(element) => { element.dataset.opened = 'once'; }")
        await dialog.get_by_label("Add a member").fill(who.email)
        await dialog.get_by_role("button", name="Add A test's user").press("Enter")
        await expect(dialog.get_by_role("list", name="Members")).to_contain_text(who.email)
        # The list is sorted by the number of members. The group with a member is now the last one, on the second page.
        await expect(page.get_by_text(f"{mark} 50")).to_have_count(1)
        await expect(dialog).to_have_attribute("data-opened", "once")
        await page.keyboard.press("Escape")

        # The last row of the second page is removed.
        await page.get_by_role("navigation", name="Pages").get_by_role("button", name="Next").click()
        await choose(page, f"{mark} 00", "Delete")
        await modal(page).get_by_role("button", name="Delete").click()
        await expect(page.get_by_text(f"{mark} 50")).to_have_count(1)

        # A link to a group that does not exist opens a dialog with an error.
        await page.goto(f"/console/groups?group={ids[0]}")
        await expect(modal(page).get_by_role("alert")).to_contain_text("not found", ignore_case=True)
    finally:
        server.sql("DELETE FROM groups WHERE name LIKE %s", [f"{mark}%"])


# model access -------------------------------------------------------------------------------------------------------


async def test_rules_of_several_groups_are_edited_and_saved_at_once(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], admin: httpx2.Client
) -> None:
    who = new_user("user")
    key = api(server, who).post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    first, second, model = new_name("Allowed"), new_name("Denied"), "tokens-7-3"
    allowed, denied = new_group(admin, first), new_group(admin, second)
    admin.post(f"{GROUPS}/{allowed}/members", json={"user_id": str(who.id)}).raise_for_status()
    body = {"provider": "sandbox", "model_id": model, "display_name": "Model of the matrix", "access": "restricted"}
    admin.post(CATALOG, json=body).raise_for_status()
    assert call_model(server, key, model=f"sandbox/{model}").status_code == 404

    await sign_in("admin", "/console/access")
    cell = page.get_by_role("combobox", name=f"sandbox/{model} for {first}")
    echo = page.get_by_role("combobox", name=f"sandbox/echo for {second}")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await cell.select_option("Allow")
    # Unsaved edits are kept when the filter changes.
    await page.get_by_label("Search groups").fill(second)
    await page.keyboard.press("Enter")
    await expect(cell).to_have_count(0)
    await echo.select_option("Deny")
    await expect(row(page, "Model of the matrix")).to_contain_text("Restricted")
    await check_screen(page)
    await page.get_by_role("button", name="Save 2 changes").click()
    await expect(page.get_by_text("2 changes were saved.").first).to_be_visible()
    assert call_model(server, key, model=f"sandbox/{model}").status_code == 200
    rules = [
        (rule["group_id"], rule["model_id"], rule["access_type"]) for rule in admin.get(f"{GROUPS}/model-access").json()
    ]
    assert sorted(rules) == sorted([(allowed, f"sandbox/{model}", "ALLOW"), (denied, "sandbox/echo", "DENY")])

    await page.get_by_label("Models", exact=True).select_option("Restricted or with rules")
    await page.get_by_label("Search groups").fill("")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("table", name="Model access").get_by_role("row")).to_have_count(3)
    await cell.select_option("Deny")
    await echo.select_option("No rule")
    await page.get_by_role("button", name="Save 2 changes").click()
    await expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    assert call_model(server, key, model=f"sandbox/{model}").status_code == 404
    (rule,) = admin.get(f"{GROUPS}/model-access").json()
    assert (rule["group_id"], rule["access_type"]) == (allowed, "DENY")


async def test_a_change_that_fails_stays_in_the_table_and_the_others_are_saved(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    removed, kept = new_name("Removed"), new_name("Kept")
    removed_id, kept_id = new_group(admin, removed), new_group(admin, kept)
    await sign_in("admin", "/console/access")
    await page.get_by_role("combobox", name=f"sandbox/echo for {removed}").select_option("Deny")
    await page.get_by_role("combobox", name=f"sandbox/echo for {kept}").select_option("Deny")
    admin.delete(f"{GROUPS}/{removed_id}").raise_for_status()
    await page.get_by_role("button", name="Save 2 changes").click()
    failures = page.get_by_role("alert").filter(has_text="1 change was not saved")
    await expect(failures).to_contain_text("Group not found")
    await expect(page.get_by_role("button", name="Save 1 change")).to_be_enabled()
    assert kept_id in [rule["group_id"] for rule in admin.get(f"{GROUPS}/model-access").json()]
    await page.get_by_role("link", name="Groups", exact=True).click()
    dialog = modal(page)
    await expect(dialog).to_contain_text("Changes that you have not saved will be lost.")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Keep editing").click()
    await page.get_by_role("button", name="Discard").click()
    await expect(failures).to_have_count(0)
    await page.get_by_role("link", name="Groups", exact=True).click()
    await expect(page.get_by_role("heading", name="Groups", exact=True)).to_be_visible()


# budgets ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_budgets(server: GatehouseServer, admin: httpx2.Client) -> Iterator[None]:
    yield
    for budget in admin.get(BUDGETS).json()["items"]:
        admin.delete(f"{BUDGETS}/{budget['id']}").raise_for_status()


@pytest.mark.usefixtures("no_budgets")
async def test_a_users_budget_is_created_spent_edited_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], admin: httpx2.Client
) -> None:
    who = new_user("user")
    key = api(server, who).post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    await sign_in("admin", "/console/budgets")
    await expect(page.get_by_role("heading", name="No budgets yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New budget").click()
    dialog = modal(page)
    await dialog.get_by_label("Applies to").select_option("User")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("limit_usd, limit_requests and limit_tokens is needed")
    await expect(dialog.get_by_label("Dollars")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Requests").fill("many")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert").filter(has_text="Enter a whole number.")).to_be_visible()
    await dialog.get_by_label("Requests").fill("2")
    await dialog.get_by_label("Dollars").fill("0.25")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_label("User", exact=True)).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    await dialog.get_by_label("User", exact=True).fill(who.email)
    await dialog.get_by_role("button", name="Choose A test's user").press("Enter")
    await expect(dialog.get_by_role("group", name="User")).to_contain_text("A test's user")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    budget = row(page, "A test's user")
    await expect(budget).to_contain_text("$0.00 of $0.25")
    await expect(budget).to_contain_text("0 of 2 requests")

    recorded_call(server, key)
    assert call_model(server, key).status_code == 200
    assert call_model(server, key).status_code == 429
    await page.reload()
    await expect(budget).to_contain_text(re.compile("[12] of 2 requests"))
    await check_screen(page)
    await choose(page, "A test's user, month", "Edit")
    await expect(dialog.get_by_label("Dollars")).to_have_value("0.25")
    await dialog.get_by_label("Dollars").fill("")
    await dialog.get_by_label("Requests").fill("10")
    await dialog.get_by_label("Over the limit").select_option("warn")
    await dialog.get_by_role("button", name="Save").click()
    await expect(budget).to_contain_text("of 10 requests")
    await expect(budget).to_contain_text("Event only")
    (stored,) = admin.get(BUDGETS).json()["items"]
    assert (stored["scope_id"], stored["limit_usd"], stored["action"]) == (str(who.id), None, "warn")
    await page.get_by_label("Applies to").select_option("Group")
    await expect(page.get_by_role("heading", name="No budget matches the filter")).to_be_visible()
    await page.get_by_role("button", name="Clear").first.click()
    await choose(page, "A test's user, month", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No budgets yet")).to_be_visible()
    assert admin.get(BUDGETS).json()["total"] == 0


@pytest.mark.usefixtures("no_budgets")
async def test_a_budget_can_be_for_the_organization_a_group_a_key_or_a_client(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], admin: httpx2.Client
) -> None:
    who, group, client, key = new_user("user"), new_name("Group"), new_name("Client"), new_name("Key")
    api(server, who).post("/api/auth/api-keys", json={"description": key}).raise_for_status()
    new_group(admin, group)
    admin.post("/api/admin/oauth-clients/", json={"name": client, "scopes": ["chat:write"]}).raise_for_status()
    await sign_in("admin", "/console/budgets")
    dialog = modal(page)
    for scope, name in (
        ("Organization", "Whole organization"),
        ("Group", group),
        ("API key", key),
        ("OAuth client", client),
    ):
        await page.get_by_role("button", name="New budget").click()
        await dialog.get_by_label("Applies to").select_option(scope)
        if scope == "API key":
            await dialog.get_by_label("Owner of the key").fill(who.email)
            await dialog.get_by_role("button", name="Choose A test's user").click()
            prefix = server.sql("SELECT key_prefix FROM api_keys WHERE description = %s", [key])[0][0]
            await dialog.get_by_label("API key", exact=True).select_option(f"{key} ({prefix}…)")
        elif scope != "Organization":
            await dialog.get_by_label(scope, exact=True).select_option(name)
        await dialog.get_by_label("Period").select_option("Day")
        await dialog.get_by_label("Tokens").fill("1000000")
        await dialog.get_by_role("button", name="Create").click()
        await expect(dialog).to_be_hidden()
        await expect(row(page, name)).to_contain_text("of 1M tokens")
    await page.get_by_role("button", name="New budget").click()
    await dialog.get_by_label("Period").select_option("Day")
    await dialog.get_by_label("Tokens").fill("1")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("A budget with this scope and period already exists.")


# webhooks -----------------------------------------------------------------------------------------------------------


async def send_test(admin: httpx2.Client, webhook: str) -> None:
    """Request a test event. The request runs in another thread, because the receiver answers in this one."""
    (await asyncio.to_thread(admin.post, f"{WEBHOOKS}{webhook}/test")).raise_for_status()


async def test_a_webhook_is_created_tested_edited_and_deleted(
    page: Page, sign_in: SignIn, admin: httpx2.Client, receiver: Receiver
) -> None:
    name = new_name("Tickets")
    await sign_in("admin", "/console/webhooks")
    await expect(page.get_by_role("heading", name="No webhooks yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New webhook").click()
    dialog = modal(page)
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label("URL").fill("https://192.168.7.7/")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Choose at least one event.")
    await dialog.get_by_label("Limit reached").check()
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    await dialog.get_by_label("URL").fill(receiver.url)
    await dialog.get_by_role("button", name="Create").click()
    secret = await dialog.locator("code").inner_text()
    assert re.fullmatch("[0-9a-f]{64}", secret)
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await dialog.get_by_role("button", name="Done").click()
    await expect(row(page, name)).to_contain_text("Limit reached")
    assert secret not in await page.content()

    await page.get_by_role("button", name=f"Deliveries of “{name}”").press("Enter")
    await expect(dialog).to_contain_text("Nothing was sent yet")
    await dialog.get_by_role("button", name="Send a test event").click()
    deliveries = dialog.get_by_role("list", name="Deliveries").get_by_role("listitem")
    await expect(deliveries).to_contain_text(re.compile("Delivered.*Test event webhook_test.*1 attempt.*HTTP 200"))
    (got,) = receiver.got
    digest = hmac.new(secret.encode(), got.body, hashlib.sha256).hexdigest()
    assert got.headers["X-Service-Signature"] == f"sha256={digest}"
    receiver.answers.append(500)
    await dialog.get_by_role("button", name="Send a test event").click()
    await expect(deliveries.first).to_contain_text(re.compile("Failed.*HTTP 500"))
    await dialog.get_by_role("button", name="Send again: Test event").press("Enter")
    await expect(page.get_by_text("The event is queued.").first).to_be_visible()
    await expect(deliveries.first).to_contain_text(re.compile("Delivered.*1 attempt.*HTTP 200"))
    await expect(dialog.get_by_role("button", name="Send again")).to_have_count(0)
    assert receiver.got[-1].json["payload"] == receiver.got[-2].json["payload"]
    receiver.answers.append(500)
    await dialog.get_by_role("button", name="Send a test event").click()
    await expect(deliveries.first).to_contain_text(re.compile("Failed.*HTTP 500"))
    await deliveries.first.get_by_text("Payload").click()
    await expect(deliveries.first).to_contain_text("This is a test.")
    await check_screen(page)
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()

    await choose(page, name, "Edit")
    await expect(dialog.get_by_label("Limit reached")).to_be_checked()
    await dialog.get_by_label("DLP action").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(row(page, name)).to_contain_text("DLP action")
    await choose(page, name, "Disable")
    await expect(row(page, name)).to_contain_text("Disabled")
    (stored,) = admin.get(WEBHOOKS).json()
    assert (sorted(stored["events"]), stored["enabled"]) == (["dlp_trigger", "quota_exceeded"], False)
    # The webhook still uses the secret that was shown.
    await send_test(admin, stored["id"])
    digest = hmac.new(secret.encode(), receiver.got[-1].body, hashlib.sha256).hexdigest()
    assert receiver.got[-1].headers["X-Webhook-Signature"] == digest
    await choose(page, name, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No webhooks yet")).to_be_visible()


async def test_the_states_of_deliveries_are_shown_with_their_errors(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, receiver: Receiver
) -> None:
    name = new_name("Down")
    body = {"name": name, "url": receiver.url, "events": ["quota_exceeded"], "secret": "a secret of the test"}
    webhook = admin.post(WEBHOOKS, json=body).json()["id"]
    receiver.otherwise = 503
    await send_test(admin, webhook)
    server.sql("UPDATE webhook_deliveries SET status = 'dead_letter' WHERE webhook_id = %s", [webhook])
    try:
        await sign_in("auditor", f"/console/webhooks?webhook={webhook}")
        delivery = modal(page).get_by_role("list", name="Deliveries").get_by_role("listitem")
        await expect(delivery).to_contain_text(re.compile("Dead letter.*HTTP 503.*503"))
        for name in ("Send a test event", "Send again"):
            await expect(modal(page).get_by_role("button", name=name)).to_have_count(0)
        await check_screen(page)
    finally:
        admin.delete(f"{WEBHOOKS}{webhook}").raise_for_status()


async def test_a_dead_letter_is_replayed_and_arrives(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, receiver: Receiver
) -> None:
    body = {"name": new_name("Away"), "url": receiver.url, "events": ["dlp_trigger"], "secret": "a secret of the test"}
    webhook = admin.post(WEBHOOKS, json=body).json()["id"]
    key = admin.post("/api/auth/api-keys", json={"description": "of the webhook's test"}).json()["api_key"]
    receiver.otherwise = 503
    try:
        call = asyncio.to_thread(call_model, server, key, "My card is 4242 4242 4242 4242.")
        assert (await call).status_code == 200
        failed = await receiver.until(3)
        # The third failure is the last one. The delivery becomes a dead letter half a minute later.
        hurry = (
            "UPDATE webhook_deliveries SET dead_at = now() WHERE webhook_id = %s AND dead_at IS NOT NULL RETURNING 1"
        )
        while not await asyncio.to_thread(server.sql, hurry, [webhook]):
            await asyncio.sleep(0.05)
        await sign_in("admin", f"/console/webhooks?webhook={webhook}")
        dialog = modal(page)
        delivery = dialog.get_by_role("list", name="Deliveries").get_by_role("listitem")
        await expect(delivery).to_contain_text(re.compile("Dead letter.*dlp_trigger.*3 attempts.*HTTP 503"))
        await assert_accessible(page)
        receiver.otherwise = 200
        await dialog.get_by_role("button", name=re.compile("Send again: DLP action")).click()
        await expect(delivery).to_contain_text(re.compile("Delivered.*dlp_trigger.*HTTP 200"))
        await expect(dialog.get_by_role("button", name="Send again")).to_have_count(0)
        assert len(receiver.got) == 4
        assert receiver.got[-1].json["payload"] == failed[0].json["payload"]
    finally:
        admin.delete(f"{WEBHOOKS}{webhook}").raise_for_status()


async def test_webhooks_are_paged_sorted_and_filtered_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, receiver: Receiver
) -> None:
    mark = new_name("Many")
    body = {"url": receiver.url, "events": ["quota_exceeded"], "secret": "a secret of the test", "enabled": False}
    for number in range(51):
        admin.post(WEBHOOKS, json={**body, "name": f"{mark} {number:02}"}).raise_for_status()
    body = {**body, "name": f"{mark} 51", "events": ["usage_threshold"], "enabled": True}
    webhook = admin.post(WEBHOOKS, json=body).json()["id"]
    try:
        await sign_in("auditor", f"/console/webhooks?search={mark.replace(' ', '+')}&page=2&webhook={webhook}")
        await expect(modal(page)).to_contain_text("Nothing was sent yet")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Previous").click()
        await check_paging(page, "Webhooks", mark, total=52, by_name=False)
        rows = row(page, mark)
        for label, value in (("Status", "Enabled"), ("Events", "Part of the plan used")):
            await page.get_by_label(label).select_option(value)
            await expect(rows).to_have_count(1)
            await expect(rows).to_contain_text(f"{mark} 51")
            await page.get_by_role("button", name="Clear").click()
            await expect(rows).to_have_count(50)
    finally:
        server.sql("DELETE FROM webhooks WHERE name LIKE %s", [f"{mark}%"])


# alerts -------------------------------------------------------------------------------------------------------------


async def test_an_alert_is_created_triggers_and_is_deleted(
    server: GatehouseServer,
    page: Page,
    sign_in: SignIn,
    new_user: Callable[[str], OtherUser],
    admin: httpx2.Client,
    receiver: Receiver,
) -> None:
    caller, name = api(server, new_user("user")), new_name("Refusals")
    key = caller.post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    recorded_call(server, key)
    await sign_in("admin", "/console/alerts")
    await expect(page.get_by_role("heading", name="No alerts yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New alert").click()
    dialog = modal(page)
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label("Metric").select_option("Latency, p95")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_label("Threshold")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Threshold").fill("60000")
    await dialog.get_by_label("Notification URL").fill("https://10.1.2.3/")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_label("Notification URL")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    await dialog.get_by_label("Notification URL").fill(receiver.url)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, name)).to_contain_text("Latency, p95 > 1 min 0 s in 60 min")
    await expect(row(page, name)).to_contain_text("Never")
    await page.get_by_role("button", name="Evaluate now").click()
    await expect(page.get_by_text("1 alert was evaluated. None triggered.").first).to_be_visible()

    await choose(page, name, "Edit")
    await dialog.get_by_label("Triggers when it is").select_option("below")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    await page.get_by_role("button", name="Evaluate now").click()
    # The scheduled evaluation may have run before this one.
    await expect(row(page, name)).not_to_contain_text("Never", timeout=60_000)
    await receiver.until(1)
    await page.get_by_role("button", name=f"History of “{name}”").press("Enter")
    trigger = dialog.get_by_role("list", name="History").get_by_role("listitem")
    await expect(trigger).to_contain_text("(threshold 1 min 0 s)")
    await check_screen(page)
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await choose(page, name, "Disable")
    await expect(row(page, name)).to_contain_text("Disabled")
    (stored,) = admin.get("/api/alerts").json()
    assert (stored["comparison"], stored["threshold"], stored["enabled"]) == ("lt", 60_000, False)
    await choose(page, name, "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No alerts yet")).to_be_visible()


async def test_alerts_are_paged_sorted_and_filtered_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    mark = new_name("Many")
    body = {"metric_type": "cost", "threshold": 1, "comparison": "gt", "window_minutes": 5, "enabled": False}
    for number in range(51):
        admin.post(ALERTS, json={**body, "name": f"{mark} {number:02}"}).raise_for_status()
    body = {**body, "name": f"{mark} 51", "metric_type": "error_rate", "enabled": True}
    rule = admin.post(ALERTS, json=body).json()["id"]
    try:
        await sign_in("auditor", f"/console/alerts?search={mark.replace(' ', '+')}&page=2&alert={rule}")
        await expect(modal(page)).to_contain_text("The alert has not triggered yet")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Previous").click()
        await check_paging(page, "Alerts", mark, total=52, by_name=False)
        rows = row(page, mark)
        for label, value in (("Status", "Enabled"), ("Metric", "Error rate")):
            await page.get_by_label(label).select_option(value)
            await expect(rows).to_have_count(1)
            await expect(rows).to_contain_text(f"{mark} 51")
            await page.get_by_role("button", name="Clear").click()
            await expect(rows).to_have_count(50)
    finally:
        server.sql("DELETE FROM alert_rules WHERE name LIKE %s", [f"{mark}%"])


async def test_the_page_of_an_alerts_history_is_in_the_address(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    name = new_name("History")
    body = {"name": name, "metric_type": "cost", "threshold": 1, "comparison": "gt", "window_minutes": 5}
    rule = admin.post(ALERTS, json={**body, "enabled": False}).json()["id"]
    server.sql(
        "INSERT INTO alert_history (id, tenant_id, rule_id, rule_name, metric_type, metric_value, threshold,"
        " comparison, triggered_at) SELECT gen_random_uuid(), tenant_id, id, name, metric_type, 1000 + n, 1, 'gt',"
        " now() - n * interval '1 minute' FROM alert_rules, generate_series(1, 22) n WHERE id = %s",
        [rule],
    )
    try:
        await sign_in("auditor", f"/console/alerts?search={name.replace(' ', '+')}&alert={rule}")
        records = modal(page).get_by_role("list", name="History").get_by_role("listitem")
        await expect(records).to_have_count(20)
        await modal(page).get_by_role("button", name="Next").press("Enter")
        await expect(records).to_have_count(2)
        assert "history=2" in page.url
        await page.reload()
        await expect(records).to_have_count(2)
        await expect(records.last).to_contain_text("1,022")
        await page.keyboard.press("Escape")
        await expect(modal(page)).to_be_hidden()
        assert "history=" not in page.url
    finally:
        server.sql("DELETE FROM alert_rules WHERE id = %s", [rule])


# roles --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_budgets")
async def test_auditors_can_only_read_and_users_have_no_links_to_these_pages(
    page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    name = new_name("Seen")
    group = new_group(admin, name)
    admin.post(
        f"{GROUPS}/{group}/model-access", json={"model_id": "sandbox/echo", "access_type": "DENY"}
    ).raise_for_status()
    budget = {"scope_type": "group", "scope_id": group, "period": "day", "limit_requests": 7}
    admin.post(BUDGETS, json=budget).raise_for_status()
    navigation = page.get_by_role("navigation", name="Main")
    main = page.get_by_role("main")
    await sign_in("auditor", "/console/groups")
    await page.get_by_role("button", name=f"Members of “{name}”").click()
    await expect(modal(page)).to_contain_text("The group has no members")
    await expect(modal(page).get_by_label("Add a member")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(main.get_by_role("button", name=re.compile("New|Actions"))).to_have_count(0)
    await navigation.get_by_role("link", name="Model access").click()
    await expect(row(page, "sandbox/echo")).to_contain_text("Deny")
    await expect(main.get_by_role("button", name=re.compile("Save"))).to_have_count(0)
    await expect(page.get_by_role("combobox")).to_have_count(1)  # the filter
    await check_screen(page)
    await navigation.get_by_role("link", name="Budgets").click()
    await expect(row(page, name)).to_contain_text("0 of 7 requests")
    await expect(main.get_by_role("button", name=re.compile("New|Actions"))).to_have_count(0)
    for link in ("Webhooks", "Alerts"):
        await navigation.get_by_role("link", name=link).click()
        await expect(page.get_by_role("heading", name=f"No {link.lower()} yet")).to_be_visible()
        await expect(main.get_by_role("button")).to_have_count(0)

    await page.context.clear_cookies()
    await sign_in("user")
    for entry in ("Groups", "Model access", "Budgets", "Webhooks", "Alerts"):
        await expect(navigation.get_by_role("link", name=entry)).to_have_count(0)
    await page.goto("/console/access")
    await expect(page.get_by_role("alert")).to_be_visible()
