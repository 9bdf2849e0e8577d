"""The sign-in page in a real browser: by keyboard, on a phone, with passkeys, under its content security policy."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Route, expect
from pydantic import SecretStr
from tests.support import chromium
from tests.support.accessibility import assert_accessible, needs_axe
from tests.support.chromium import PHONE, needs_chromium, page_of
from tests.support.members import Member, code_of, enrol, member
from tests.support.platform import PASSWORD, RunningPlatform, Tenant
from tests.support.ports import free_port

from gatehouse.foundation.settings import Settings

pytestmark = needs_chromium


@pytest.fixture(scope="module")
async def served(settings: Settings, platform: RunningPlatform) -> AsyncIterator[RunningPlatform]:
    """The platform on a real socket, with its public address."""
    port = free_port()
    # With mail settings the pages show all their links. The tests send no mail.
    mail = {"smtp_url": SecretStr("smtp://localhost?tls=off"), "mail_from": "gatehouse@gatehouse.test"}
    public = settings.model_copy(update={"public_url": f"http://localhost:{port}", **mail})
    async with RunningPlatform.start(public) as running, running.listening(port):
        yield running


@pytest.fixture(scope="module")
async def chrome() -> AsyncIterator[Browser]:
    async with chromium.browser() as started:
        yield started


@pytest.fixture
async def context(chrome: Browser, served: RunningPlatform) -> AsyncIterator[BrowserContext]:
    opened = await chrome.new_context(base_url=served.host.settings.public_url)
    yield opened
    await opened.close()


@pytest.fixture
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    async with page_of(context) as opened:
        yield opened


@pytest.fixture
async def ada(served: RunningPlatform, tenant: Tenant) -> Member:
    return await member(served, tenant, signed_in=False)


async def authenticator(page: Page) -> CDPSession:
    """Attach a virtual authenticator to the browser."""
    session = await page.context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session


async def log_in(page: Page, who: Member, path: str = "/login") -> None:
    await page.goto(path)
    await page.get_by_label("E-mail or user name").fill(who.email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()


async def test_a_user_signs_in_using_only_the_keyboard(page: Page, ada: Member) -> None:
    await page.goto("/login")
    await expect(page.get_by_label("E-mail or user name")).to_be_focused()
    await page.keyboard.type(ada.email)
    await page.keyboard.press("Tab")
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    (cookie,) = [cookie for cookie in await page.context.cookies() if cookie["name"] == "gatehouse_session"]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
    assert await page.evaluate("document.cookie") == ""
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("status")).to_have_text("You are signed out.")


async def test_enter_in_the_password_field_signs_in_and_does_not_start_single_sign_on(page: Page, ada: Member) -> None:
    await page.goto("/login")
    await page.get_by_label("E-mail or user name").fill(ada.email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()


async def test_a_wrong_password_is_announced_and_the_address_stays(page: Page, ada: Member) -> None:
    await page.goto("/login")
    await page.get_by_label("E-mail or user name").fill(ada.email)
    await page.get_by_label("Password", exact=True).fill("wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("password is wrong")
    field = page.get_by_label("Password", exact=True)
    await expect(field).to_be_focused()
    await expect(field).to_have_value("")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("E-mail or user name")).to_have_value(ada.email)


async def test_fields_have_autocomplete_attributes_for_password_managers(page: Page) -> None:
    await page.goto("/login")
    await expect(page.get_by_label("E-mail or user name")).to_have_attribute("autocomplete", "username")
    await expect(page.get_by_label("Password", exact=True)).to_have_attribute("autocomplete", "current-password")
    await page.goto("/login/reset")
    await expect(page.get_by_label("New password")).to_have_attribute("autocomplete", "new-password")


async def test_a_code_from_an_app_or_a_recovery_code_signs_in(
    served: RunningPlatform, tenant: Tenant, page: Page
) -> None:
    who = await member(served, tenant)
    secret, codes = await enrol(served, who)
    await log_in(page, who)
    field = page.get_by_label("Code from your authenticator app")
    await expect(field).to_be_focused()
    await page.keyboard.type("000000")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").first).to_contain_text("not right")
    await page.keyboard.type(code_of(secret))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()

    await page.context.clear_cookies()
    await log_in(page, who)
    await page.get_by_text("Use a recovery code").click()
    await page.get_by_label("Recovery code", exact=True).fill(codes[0])
    await page.get_by_role("button", name="Use this code").click()
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()


async def test_a_required_passkey_is_enrolled_and_used_at_the_next_sign_in(
    served: RunningPlatform, tenant: Tenant, ada: Member, page: Page
) -> None:
    await served.require_mfa(tenant.id)
    await authenticator(page)
    await log_in(page, ada)
    await page.get_by_role("button", name="Set up a passkey").click()
    await expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    assert await page.get_by_role("listitem").count() == 10
    await page.get_by_role("link", name="I have kept them").click()
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()

    await log_in(page, ada)
    await page.get_by_role("button", name="Use a passkey").press("Enter")
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    ((amr,),) = served.sql("SELECT amr FROM sessions WHERE user_id = %s ORDER BY created_at DESC LIMIT 1", [ada.id])
    assert amr[0] == "pwd"
    assert amr[-1] == "mfa"


async def test_a_passkey_that_was_not_used_is_announced_and_can_be_tried_again(
    served: RunningPlatform, tenant: Tenant, ada: Member, page: Page
) -> None:
    await served.require_mfa(tenant.id)
    await page.add_init_script(
        "navigator.credentials.create = () => Promise.reject(new DOMException('', 'NotAllowedError'))"
    )
    await log_in(page, ada)
    button = page.get_by_role("button", name="Set up a passkey")
    await button.click()
    await expect(page.locator("#passkey-fault")).to_contain_text("The passkey was not used")
    await expect(button).to_be_enabled()
    await expect(button).to_be_focused()


async def test_a_required_app_is_enrolled(served: RunningPlatform, tenant: Tenant, ada: Member, page: Page) -> None:
    await served.require_mfa(tenant.id)
    await log_in(page, ada)
    await page.get_by_role("button", name="Set up an authenticator app").click()
    secret = re.sub(r"\s", "", await page.locator(".secret").inner_text())
    await page.get_by_label("Code from the app").fill(code_of(secret))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    # Each code is on one line.
    heights = await page.locator(".codes li").evaluate_all("items => items.map(item => item.clientHeight)")
    assert len(heights) == 10
    assert max(heights) < 30


async def test_the_page_of_a_signed_in_user_links_to_the_console_and_the_documentation(page: Page, ada: Member) -> None:
    await log_in(page, ada)
    await check_layout(page)
    await expect(page.get_by_role("link", name="Console")).to_have_attribute("href", "/console")
    await expect(page.get_by_role("link", name="API documentation")).to_have_attribute("href", "/docs")
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()


async def test_an_unknown_path_shows_a_page(page: Page) -> None:
    for path in ("/nothing", "/admin", "/v1/videos"):
        answer = await page.goto(path)
        assert answer is not None
        assert answer.status == 404
        await check_layout(page)
    await expect(page.get_by_role("alert")).to_contain_text("Gatehouse does not serve videos")


@pytest.mark.parametrize("signed_in", [False, True])
async def test_the_browser_returns_to_an_application_at_another_origin(
    served: RunningPlatform, ada: Member, page: Page, application: str, signed_in: bool
) -> None:
    """Browsers apply the page's content security policy to all redirects that follow a form, so the policy must allow
    the application's origin."""
    operator = await served.operator()
    body: dict[str, Any] = {"name": "the portal", "tenant_id": None, "redirect_uris": [application]}
    client = (await operator.client.post("/api/admin/oauth-clients/", json=body)).json()
    request = {
        "response_type": "code", "client_id": client["client_id"], "redirect_uri": application, "scope": "openid",
        "state": secrets.token_urlsafe(8), "code_challenge": "x" * 43, "code_challenge_method": "S256",
    }  # fmt: skip
    path = f"/oauth/authorize?{urlencode(request)}"
    if signed_in:
        await log_in(page, ada)
        await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
        await page.goto(path)
    else:
        await log_in(page, ada, path)
    await expect(page).to_have_title("the application")
    query = parse_qs(urlsplit(page.url).query)
    assert query["state"] == [request["state"]]
    assert query["code"]


@pytest.fixture
async def application() -> AsyncIterator[str]:
    """The callback of an application at another origin, which answers every request with a page."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<!doctype html><title>the application</title><link rel=icon href=data:,>"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"


async def test_a_form_of_another_site_does_not_sign_the_user_out(
    served: RunningPlatform, ada: Member, page: Page
) -> None:
    await log_in(page, ada)
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    base = served.host.settings.public_url

    async def evil(route: Route) -> None:
        form = f"<form method=post action='{base}/logout'><input name=proof value=x><button>Win a prize</button></form>"
        await route.fulfill(body=form, content_type="text/html")

    await page.context.route("https://evil.example/**", evil)
    await page.goto("https://evil.example/")
    await page.get_by_role("button").click()
    await expect(page.get_by_role("alert")).to_contain_text("came from somewhere else")
    await page.goto("/login")
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()


@needs_axe
async def test_every_page_passes_the_accessibility_checks(served: RunningPlatform, tenant: Tenant, page: Page) -> None:
    """Every page is checked in the light and in the dark theme, and some pages also with their error messages."""
    who = await member(served, tenant)
    secret, _ = await enrol(served, who)
    fresh = await served.new_tenant()
    newcomer = await member(served, fresh, signed_in=False)
    await served.require_mfa(fresh.id)
    await authenticator(page)
    for path in (*_PAGES, "/nothing", "/oauth/authorize?client_id=unknown", "/login/reset?token=x&email=a%40b.test"):
        await page.goto(path)
        await assert_accessible(page)
    await page.get_by_label("New password").fill("a long enough password")
    await page.get_by_label("The same again").fill("another long password")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await assert_accessible(page)
    await page.goto("/login/forgot")
    await page.get_by_label("E-mail").fill(newcomer.email)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_be_visible()
    await assert_accessible(page)

    await log_in(page, who)
    await page.get_by_label("Code from your authenticator app").fill("000000")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").first).to_be_visible()
    await page.get_by_text("Use a recovery code").click()
    await assert_accessible(page)
    await page.get_by_label("Code from your authenticator app").fill(code_of(secret))
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("status")).to_be_visible()
    await assert_accessible(page)

    await log_in(page, newcomer)
    await expect(page.get_by_role("button", name="Set up a passkey")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Set up an authenticator app").click()
    await expect(page.get_by_label("Code from the app")).to_be_visible()
    await assert_accessible(page)
    shown_secret = re.sub(r"\s", "", await page.locator(".secret").inner_text())
    await page.get_by_label("Code from the app").fill(code_of(shown_secret))
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    await assert_accessible(page)


_PAGES = (
    "/login", "/login?done=password", "/login/reset", "/login/invitation", "/login/forgot", "/login/confirm-address",
    "/login/nothing",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 800}], ids=["phone", "desk"])
async def test_every_page_fits_and_can_be_read(
    served: RunningPlatform, tenant: Tenant, chrome: Browser, scheme: str, size: dict[str, int]
) -> None:
    who = await member(served, tenant)
    await enrol(served, who)
    fresh = await served.new_tenant()
    newcomer = await member(served, fresh, signed_in=False)
    await served.require_mfa(fresh.id)
    context = await chrome.new_context(base_url=served.host.settings.public_url, viewport=size, color_scheme=scheme)
    async with page_of(context) as page:
        for path in _PAGES:
            await page.goto(path)
            await check_layout(page)
        await log_in(page, who)
        await expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
        await check_layout(page)
        await context.clear_cookies()
        await log_in(page, newcomer)
        await check_layout(page)
        await page.get_by_role("button", name="Set up an authenticator app").click()
        await expect(page.get_by_label("Code from the app")).to_be_visible()
        await check_layout(page)
    await context.close()


async def check_layout(page: Page) -> None:
    """Check for horizontal scrolling, small controls, one main heading, fields without a label, and low contrast (WCAG
    2.2, AA)."""
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert await page.get_by_role("heading", level=1).count() == 1
    assert await page.evaluate(_UNNAMED) == []
    assert await page.evaluate(_SMALL) == []
    assert await page.evaluate(_FAINT) == []


_UNNAMED = """() => [...document.querySelectorAll("input:not([type=hidden])")]
  .filter((input) => !input.labels.length).map((input) => input.outerHTML)"""
_SMALL = """() => [...document.querySelectorAll("button, .button, input:not([type=hidden])")]
  .filter((control) => control.checkVisibility() && control.getBoundingClientRect().height < 44)
  .map((control) => control.outerHTML)"""
_FAINT = """() => {
  const channels = (color) => color.match(/[0-9.]+/g).map(Number);
  const light = (color) => channels(color).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((channels(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${texts.currentNode.data.trim()}: ${contrast.toFixed(2)}`);
  }
  return faint;
}"""
