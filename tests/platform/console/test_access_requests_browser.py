"""Requests for access in Chromium: a user asks for a model and for a limit, and an administrator decides."""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect
from tests.platform.console.conftest import (
    DESK,
    OtherUser,
    SignIn,
    api,
    call_model,
    check_screen,
    enter_password,
    modal,
)
from tests.support.chromium import needs_chromium, page_of
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

MODEL = "sandbox/echo"


@pytest.fixture
def restricted(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> Iterator[None]:
    """The sandbox's model is restricted, and no request is pending."""
    server.sql("DELETE FROM access_requests")
    server.sql("DELETE FROM groups")
    ((entry,),) = server.sql("SELECT id FROM model_configs WHERE provider = 'sandbox' AND model_id = 'echo'")
    admin, path = api(server, new_user("admin")), f"/api/admin/models/catalog/{entry}"
    assert admin.put(path, json={"access": "restricted"}).status_code == 200
    yield
    admin.put(path, json={"access": "open"})
    admin.close()


@asynccontextmanager
async def inbox_of(chrome: Browser, server: GatehouseServer, who: OtherUser, path: str) -> AsyncIterator[Page]:
    """Sign another person in, in a browser of their own, and open the path."""
    context = await chrome.new_context(base_url=server.url, viewport=DESK)  # type: ignore[arg-type]
    try:
        async with page_of(context) as page:
            await page.goto(path)
            await enter_password(page, who.email)
            yield page
    finally:
        await context.close()


@pytest.mark.usefixtures("restricted")
async def test_a_user_asks_for_a_model_and_may_use_it_when_an_administrator_has_approved(
    server: GatehouseServer, page: Page, chrome: Browser, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = await sign_in("user", "/console/usage")
    key = api(server, who).post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    assert call_model(server, key).status_code == 404
    # The user opens the dialog with the keyboard.
    await page.get_by_role("link", name="Ask for a model").focus()
    await page.keyboard.press("Enter")
    dialog = modal(page)
    await expect(dialog.get_by_label("Model")).to_be_focused()
    await expect(dialog.locator(f'option[value="{MODEL}"]')).to_be_attached()
    await check_screen(page)
    await page.keyboard.type(MODEL)
    await page.keyboard.press("Tab")
    await page.keyboard.type("Translations for the spring campaign.")
    await dialog.get_by_role("button", name="Send request").press("Enter")
    card = page.get_by_role("listitem").filter(has_text=MODEL)
    await expect(card).to_contain_text("Waiting")
    await expect(page).to_have_url(re.compile("/console/access-requests$"))
    await check_screen(page)

    async with inbox_of(chrome, server, new_user("admin"), "/console") as inbox:
        await inbox.get_by_role("link", name="One request waits for a decision.").click()
        waiting = inbox.get_by_role("listitem").filter(has_text=MODEL)
        await expect(waiting).to_contain_text("Translations for the spring campaign.")
        await expect(waiting).to_contain_text("A test's user")
        await check_screen(inbox)
        await waiting.get_by_role("button", name="Approve").click()
        decision = modal(inbox)
        await expect(decision.get_by_label("Group")).to_have_value("")
        await check_screen(inbox)
        await decision.get_by_label("Reason").fill("Until May.")
        await decision.get_by_role("button", name="Approve").click()
        # The list may show the decision before the response to it has arrived.
        await expect(inbox.get_by_text("The request was approved.")).to_be_visible()
        assert call_model(server, key).status_code == 200
    await page.reload()
    await expect(card).to_contain_text("Approved")
    await expect(card).to_contain_text(f"Member of “Access to {MODEL}”")
    await expect(card).to_contain_text("Until May.")
    query = "SELECT g.name FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.user_id = %s"
    assert server.sql(query, [who.id]) == [(f"Access to {MODEL}",)]


@pytest.mark.usefixtures("restricted")
async def test_an_address_with_a_model_opens_the_form_and_a_request_is_withdrawn(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    await page.goto(f"/console/access-requests?model={MODEL}")
    dialog = modal(page)
    await expect(dialog.get_by_label("Model")).to_have_value(MODEL)
    await dialog.get_by_role("button", name="Send request").click()
    await expect(dialog.get_by_text("Enter a reason.")).to_be_visible()
    await dialog.get_by_label("Model").fill("sandbox/unknown")
    await dialog.get_by_label("Reason").fill("Tests.")
    await dialog.get_by_role("button", name="Send request").click()
    await expect(dialog.get_by_text("is not a model that you can ask for")).to_be_visible()
    await dialog.get_by_label("Model").fill(MODEL)
    await dialog.get_by_role("button", name="Send request").click()
    await page.get_by_role("button", name=f"Withdraw {MODEL}").click()
    await modal(page).get_by_role("button", name="Withdraw").click()
    await expect(page.get_by_role("listitem").filter(has_text=MODEL)).to_contain_text("Withdrawn")
    assert server.sql("SELECT status FROM access_requests WHERE user_id = %s", [who.id]) == [("withdrawn",)]
    await page.get_by_label("Status").select_option("approved")
    await expect(page.get_by_role("heading", name="No request has this status")).to_be_visible()


@pytest.mark.usefixtures("restricted")
async def test_a_higher_limit_is_given_or_denied_with_a_reason(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin = await sign_in("admin", "/console/approvals?view=access")
    await expect(page.get_by_role("heading", name="Nothing waits for a decision")).to_be_visible()
    who = new_user("user")
    budget = {"scope_type": "user", "scope_id": str(who.id), "period": "month", "limit_usd": 100}
    assert api(server, admin).post("/api/admin/budgets", json=budget).status_code == 201
    client = api(server, who)
    for period, limit in (("month", 500), ("day", 50)):
        body = {"kind": "limit", "period": period, "limit_usd": limit, "reason": "A large translation."}
        assert client.post("/api/access-requests", json=body).status_code == 201
    # The new requests appear without a reload.
    card = page.get_by_role("listitem").filter(has_text="$500.00 a month")
    await card.get_by_role("button", name="Approve").click(timeout=60_000)
    decision = modal(page)
    await expect(decision.get_by_label("Limit in dollars")).to_have_value("500")
    await decision.get_by_label("Limit in dollars").fill("50")
    await decision.get_by_role("button", name="Approve").click()
    await expect(decision.get_by_text("is less than the present limit of 100")).to_be_visible()
    await check_screen(page)
    await decision.get_by_label("Limit in dollars").fill("250")
    await decision.get_by_role("button", name="Approve").click()
    await expect(card).to_be_hidden()
    query = "SELECT period, limit_usd::int FROM budgets WHERE scope_id = %s"
    assert server.sql(query, [who.id]) == [("month", 250)]
    card = page.get_by_role("listitem").filter(has_text="$50.00 a day")
    await card.get_by_role("button", name="Deny").click()
    await modal(page).get_by_label("Reason").fill("A month is enough.")
    await modal(page).get_by_role("button", name="Deny").click()
    await expect(card).to_be_hidden()
    assert server.sql("SELECT decision_reason FROM access_requests WHERE status = 'denied'") == [
        ("A month is enough.",)
    ]
    await page.get_by_role("link", name="Approved").click()
    await expect(page.get_by_role("listitem").filter(has_text="$500.00 a month")).to_contain_text("Given$250.00")


@pytest.mark.usefixtures("restricted")
async def test_a_user_asks_for_a_limit_where_their_budgets_are_shown(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = await sign_in("user")
    budget = {"scope_type": "user", "scope_id": str(who.id), "period": "month", "limit_usd": 100}
    assert api(server, new_user("admin")).post("/api/admin/budgets", json=budget).status_code == 201
    await page.get_by_role("link", name="My usage").click()
    await page.get_by_role("link", name="Ask for a higher limit").click()
    dialog = modal(page)
    await expect(dialog.get_by_text("Now $100.00.")).to_be_visible()
    await check_screen(page)
    await dialog.get_by_label("Limit in dollars").fill("200.50")
    await dialog.get_by_label("Reason").fill("A large translation.")
    await dialog.get_by_role("button", name="Send request").click()
    await expect(page.get_by_role("listitem").filter(has_text="$200.50 a month")).to_contain_text("Waiting")
    query = "SELECT kind, period, limit_usd::text, status FROM access_requests WHERE user_id = %s"
    assert server.sql(query, [who.id]) == [("limit", "month", "200.50", "pending")]


@pytest.mark.usefixtures("restricted")
async def test_an_auditor_sees_requests_without_the_buttons_and_nobody_approves_their_own(
    server: GatehouseServer, page: Page, chrome: Browser, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin = new_user("admin")
    body = {"kind": "model", "model": MODEL, "reason": "Tests."}
    assert api(server, admin).post("/api/access-requests", json=body).status_code == 201
    await sign_in("auditor", "/console/approvals")
    await page.get_by_role("link", name="Access (1)").click()
    await expect(page.get_by_role("listitem").filter(has_text=MODEL)).to_be_visible()
    await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    await expect(page.get_by_role("button", name="Deny")).to_have_count(0)
    async with inbox_of(chrome, server, admin, "/console/approvals?view=access") as inbox:
        await expect(inbox.get_by_text("Somebody else must approve your own request.")).to_be_visible()
        await expect(inbox.get_by_role("button", name="Approve")).to_have_count(0)
