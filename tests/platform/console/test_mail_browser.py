"""Invitations, forgotten passwords and confirmations in Chromium, with mails from the process with background work."""

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Browser, Page, expect
from tests.platform.console.conftest import SignIn, check_screen, modal
from tests.support.chromium import needs_chromium, page_of
from tests.support.mail_server import SENDER, MailServer, link_of, mail_server
from tests.support.platform import PASSWORD
from tests.support.ports import free_port
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

NEW_PASSWORD = "a password that nobody else has"


@pytest.fixture(scope="module")
def mailbox() -> Iterator[MailServer]:
    with mail_server() as running:
        yield running


@pytest.fixture(scope="module")
def server(console: Path, mailbox: MailServer) -> Iterator[GatehouseServer]:
    """A server that sends mails, with links to itself."""
    url = f"http://127.0.0.1:{free_port()}"
    made = GatehouseServer(
        env={
            "RATE_LIMIT_TIERS": '{"/login": 100000000, "/console": 100000000, "/api/auth": 100000000}',
            "PUBLIC_URL": url, "SMTP_URL": mailbox.url, "MAIL_FROM": SENDER,
        }
    )  # fmt: skip
    made.url = url
    with made as running:
        yield running


async def set_password(page: Page, link: str) -> None:
    await page.goto(link)
    await page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
    await page.get_by_label("The same again").fill(NEW_PASSWORD)
    await page.keyboard.press("Enter")


async def test_an_invited_person_comes_from_the_mail_to_the_console(
    server: GatehouseServer, mailbox: MailServer, page: Page, sign_in: SignIn, chrome: Browser
) -> None:
    email = f"grace-{uuid4().hex[:10]}@example.test"
    await sign_in("admin", "/console/users")
    await page.get_by_role("button", name="New user").click()
    await modal(page).get_by_label("E-mail address").fill(email)
    await modal(page).get_by_role("button", name="Create user").click()
    await expect(page.get_by_text(f"An invitation is on its way to {email}.")).to_be_visible()
    await expect(modal(page)).to_be_hidden()
    mail = await mailbox.next()
    assert mail["To"] == email
    theirs = await chrome.new_context()
    async with page_of(theirs) as opened:
        await set_password(opened, link_of(mail))
        await expect(opened).to_have_url(f"{server.url}/console")
        await expect(opened.get_by_role("button", name="Account")).to_be_visible()
    await theirs.close()

    await page.get_by_label("Search").fill(email)
    await page.keyboard.press("Enter")
    rows = page.get_by_role("table", name="Users").get_by_role("row")
    await expect(rows).to_have_count(2)
    await rows.nth(1).get_by_role("button", name=re.compile("Actions")).click()
    await page.get_by_role("menuitem", name="New password link").click()
    await expect(page.get_by_text(f"A link to set a new password is on its way to {email}.")).to_be_visible()
    assert link_of(await mailbox.next()).startswith(f"{server.url}/login/reset?")


async def test_a_forgotten_password_is_replaced_by_keyboard(
    server: GatehouseServer, mailbox: MailServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    await page.context.clear_cookies()
    await page.goto("/login")
    await page.get_by_role("link", name="Forgot your password?").press("Enter")
    await expect(page.get_by_label("E-mail")).to_be_focused()
    await page.keyboard.type(who.email)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("a mail with a link is on its way")
    await set_password(page, link_of(await mailbox.next()))
    await expect(page.get_by_role("status")).to_contain_text("Your new password is set")
    await expect(page.get_by_label("E-mail or user name")).to_have_value(who.email)
    await page.get_by_label("Password", exact=True).fill(NEW_PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()


async def test_a_registered_person_confirms_the_address_before_the_console_opens(
    server: GatehouseServer, mailbox: MailServer, page: Page, sign_in: SignIn, chrome: Browser
) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    email = f"ada@{domain}"
    server.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, self_registration, verified_at) VALUES (%s, %s, true, now())",
        [DEFAULT_TENANT, domain],
    )
    registration = {"email": email, "password": PASSWORD}
    assert httpx2.post(f"{server.url}/api/auth/register", json=registration).status_code == 202
    link = link_of(await mailbox.next())
    await sign_in("admin", f"/console/users?search={domain}")
    await expect(page.get_by_role("table", name="Users")).to_contain_text("Address not confirmed")
    await check_screen(page)
    theirs = await chrome.new_context()
    async with page_of(theirs) as opened:
        await opened.goto(link)
        await expect(opened.get_by_role("heading", name="Confirm your address")).to_be_visible()
        await opened.get_by_label("Password").fill(NEW_PASSWORD)
        await opened.keyboard.press("Enter")
        await expect(opened.get_by_role("alert")).to_contain_text("this is not the account's password")
        await opened.get_by_label("Password").fill(PASSWORD)
        await opened.keyboard.press("Enter")
        await expect(opened.get_by_role("button", name="Account")).to_be_visible()
    await theirs.close()
    assert server.sql("SELECT awaits_confirmation FROM users WHERE email = %s", [email]) == [(False,)]


async def test_an_administrator_sends_a_test_mail_and_sees_the_result(
    mailbox: MailServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("admin", "/console/organization")
    panel = page.get_by_role("region", name="Mail", exact=True)
    await panel.get_by_role("button", name="Send a test mail").press("Enter")
    await expect(panel.get_by_role("status")).to_contain_text(f"The mail server accepted the mail to {who.email}.")
    mail = await mailbox.next()
    assert (mail["To"], mail["Subject"]) == (who.email, "Test mail from Gatehouse")
    await check_screen(page)
    mailbox.refusal = "550 no such mailbox"
    try:
        await panel.get_by_role("button", name="Send a test mail").click()
        await expect(panel.get_by_role("status")).to_contain_text("550 no such mailbox")
    finally:
        mailbox.refusal = None
    assert mailbox.mails.empty()
