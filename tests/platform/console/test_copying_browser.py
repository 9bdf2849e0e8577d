"""Copying in a browser without a clipboard, as in a page without TLS on another host."""

import re

import pytest
from playwright.async_api import Page, expect
from tests.platform.console.conftest import SignIn
from tests.support.chromium import needs_chromium

pytestmark = needs_chromium

REFUSAL = "The browser does not allow copying here."


@pytest.fixture
async def without_clipboard(page: Page) -> Page:
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    return page


async def test_a_text_that_cannot_be_copied_is_reported(without_clipboard: Page, sign_in: SignIn) -> None:
    page = without_clipboard
    await sign_in("user", "/console/start")
    await page.get_by_role("button", name="Create key").click()
    copy = page.get_by_role("button", name="Copy").first
    await copy.click()
    await expect(page.get_by_text(REFUSAL).first).to_be_visible()
    # The button does not say that the text was copied.
    await expect(copy).to_have_accessible_name("Copy")


async def test_a_command_that_cannot_be_copied_is_reported(without_clipboard: Page, sign_in: SignIn) -> None:
    page = without_clipboard
    await sign_in("user", "/console/chat")
    await page.get_by_label("Message", exact=True).fill("Hello")
    await page.get_by_label("Model", exact=True).select_option("sandbox/echo")
    await page.get_by_label("Message", exact=True).press("Enter")
    await page.wait_for_url(re.compile("/console/chat/[0-9a-f-]{36}$"))
    await page.get_by_role("button", name="Actions for the conversation").click()
    await page.get_by_role("menuitem", name="Copy as curl").click()
    await expect(page.get_by_text(REFUSAL).first).to_be_visible()
    await expect(page.get_by_text("The command was copied.")).to_have_count(0)
