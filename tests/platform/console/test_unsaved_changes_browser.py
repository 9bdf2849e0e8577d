"""Half-edited forms: a link, Back and the end of a dialog ask once before the changes are lost."""

from uuid import uuid4

import pytest
from playwright.async_api import Dialog, Locator, Page, expect
from tests.platform.console.conftest import SignIn, api, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

QUESTION = "Discard unsaved changes?"


def question(page: Page) -> Locator:
    return page.get_by_role("dialog", name=QUESTION)


async def keep(page: Page) -> None:
    await question(page).get_by_role("button", name="Keep editing").click()
    await expect(question(page)).to_have_count(0)


async def discard(page: Page) -> None:
    await question(page).get_by_role("button", name="Discard changes").click()
    await expect(question(page)).to_have_count(0)


@pytest.mark.parametrize("by", ["link", "back"])
async def test_a_page_with_unsaved_changes_is_left_after_a_question(page: Page, sign_in: SignIn, by: str) -> None:
    await sign_in("admin", "/console/groups")
    await page.get_by_role("link", name="Organization", exact=True).click()
    name = page.get_by_label("Name", exact=True)
    before = await name.input_value()
    # Two forms of the page have changes. The console asks once.
    await name.fill("Half a name")
    await page.get_by_label("Further names").fill("half_a_field")

    async def leave() -> None:
        if by == "link":
            await page.get_by_role("link", name="Webhooks", exact=True).click()
        else:
            await page.evaluate("history.back()")

    await leave()
    await expect(question(page)).to_be_visible()
    await assert_accessible(page)
    # Escape answers the question. It keeps the changes.
    await page.keyboard.press("Escape")
    await expect(question(page)).to_have_count(0)
    assert page.url.endswith("/console/organization")
    await expect(name).to_have_value("Half a name")

    await leave()
    await discard(page)
    heading = "Webhooks" if by == "link" else "Groups"
    await expect(page.get_by_role("heading", name=heading, exact=True, level=1)).to_be_visible()
    await page.get_by_role("link", name="Organization", exact=True).click()
    await expect(name).to_have_value(before)


async def test_saved_changes_are_left_without_a_question(page: Page, sign_in: SignIn, server: GatehouseServer) -> None:
    who = await sign_in("admin", "/console/groups")
    admin = api(server, who)
    name = f"Saved {uuid4().hex[:8]}"
    await page.get_by_role("button", name="New group").first.click()
    await modal(page).get_by_label("Name", exact=True).fill(name)
    await modal(page).get_by_role("button", name="Create").click()
    await expect(modal(page)).to_have_count(0)
    await page.get_by_role("link", name="Webhooks", exact=True).click()
    await expect(page.get_by_role("heading", name="Webhooks", exact=True, level=1)).to_be_visible()
    await expect(question(page)).to_have_count(0)
    (group,) = admin.get("/api/admin/groups", params={"search": name}).json()["groups"]
    admin.delete(f"/api/admin/groups/{group['id']}").raise_for_status()


async def close_by(page: Page, way: str) -> None:
    if way == "Escape":
        await page.keyboard.press("Escape")
    elif way == "button":
        await modal(page).get_by_role("button", name="Close").click()
    else:
        await page.mouse.click(5, 5)


@pytest.mark.parametrize("way", ["Escape", "button", "backdrop"])
async def test_a_dialog_with_unsaved_changes_is_closed_after_a_question(page: Page, sign_in: SignIn, way: str) -> None:
    await sign_in("admin", "/console/groups")
    opener = page.get_by_role("button", name="New group").first
    form = page.get_by_role("dialog", name="New group")
    # Without changes, nothing asks.
    await opener.click()
    await close_by(page, way)
    await expect(form).to_have_count(0)

    await opener.click()
    field = form.get_by_label("Name", exact=True)
    await field.fill("Half a na")
    await close_by(page, way)
    await keep(page)
    await expect(field).to_have_value("Half a na")
    await close_by(page, way)
    await discard(page)
    await expect(form).to_have_count(0)
    await expect(opener).to_be_focused()
    await opener.click()
    await expect(field).to_have_value("")


async def test_cancel_discards_changes_without_a_question(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/groups")
    await page.get_by_role("button", name="New group").first.click()
    await modal(page).get_by_label("Name", exact=True).fill("Half a na")
    await modal(page).get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("link", name="Webhooks", exact=True).click()
    await expect(page.get_by_role("heading", name="Webhooks", exact=True, level=1)).to_be_visible()


async def test_back_asks_before_it_closes_a_dialog_with_changes(page: Page, sign_in: SignIn) -> None:
    """The URL contains this dialog, so closing it after the question is a navigation, which must not ask again."""
    await sign_in("user", "/console/access-requests")
    await page.get_by_role("button", name="Ask for a model").first.click()
    reason = modal(page).get_by_label("Reason")
    await reason.fill("Half a rea")
    await page.evaluate("history.back()")
    await keep(page)
    await expect(reason).to_have_value("Half a rea")
    await page.keyboard.press("Escape")
    await discard(page)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert "ask=" not in page.url


async def test_back_during_the_question_about_a_dialog_is_answered_with_it(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/access-requests")
    await page.get_by_role("button", name="Ask for a model").first.click()
    reason = modal(page).get_by_label("Reason")
    await reason.fill("Half a rea")
    await page.keyboard.press("Escape")
    await expect(question(page)).to_be_visible()
    await page.evaluate("history.back()")
    await page.wait_for_url(lambda url: "ask=" not in url)
    # The router asks about Back too. The page shows one question, so nothing shows when the second one is there.
    await page.wait_for_timeout(500)
    await expect(question(page)).to_have_count(1)
    # Escape answers both: it keeps the form.
    await page.keyboard.press("Escape")
    await expect(question(page)).to_have_count(0)
    await page.wait_for_url(lambda url: "ask=" in url)
    await expect(reason).to_have_value("Half a rea")

    await page.evaluate("history.back()")
    await keep(page)
    await expect(reason).to_have_value("Half a rea")
    await page.wait_for_url(lambda url: "ask=" in url)
    await page.evaluate("history.back()")
    await discard(page)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert "ask=" not in page.url


async def test_a_half_written_question_of_the_chat_is_left_after_a_question(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/chat")
    message = page.get_by_role("textbox", name="Message")
    await message.fill("Half a ques")
    await page.get_by_role("link", name="API keys", exact=True).click()
    await keep(page)
    await expect(message).to_have_value("Half a ques")
    await page.get_by_label("Model", exact=True).select_option("sandbox/echo")
    await message.press("Enter")
    await page.wait_for_url("**/chat/*")
    await expect(question(page)).to_have_count(0)
    await page.get_by_role("link", name="API keys", exact=True).click()
    await expect(page.get_by_role("heading", name="API keys", exact=True, level=1)).to_be_visible()


async def test_a_question_that_cannot_be_loaded_is_asked_by_the_browser(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/organization")
    await page.route("**/LeaveDialog-*.js", lambda route: route.fulfill(status=503))
    await page.get_by_label("Name", exact=True).fill("Half a name")
    answers = [False, True]
    messages: list[str] = []

    async def answer(dialog: Dialog) -> None:
        messages.append(dialog.message)
        await (dialog.accept() if answers[len(messages) - 1] else dialog.dismiss())

    page.on("dialog", answer)
    link = page.get_by_role("link", name="Webhooks", exact=True)
    async with page.expect_event("dialog"):
        await link.click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Half a name")
    async with page.expect_event("dialog"):
        await link.click()
    await expect(page.get_by_role("heading", name="Webhooks", exact=True, level=1)).to_be_visible()
    assert [QUESTION in text for text in messages] == [True, True]
