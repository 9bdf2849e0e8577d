"""What the console loads before its first page can be used, and the parts that it loads later."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Route, expect
from tests.platform.console.conftest import (
    MAX_FIRST_LOAD_BYTES,
    SignIn,
    api,
    new_context,
    recorded_call,
)
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

LOADED_SIZES = """Object.fromEntries(
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .filter(({ name }) => new URL(name).pathname.startsWith("/console"))
        .map(({ name, encodedBodySize }) => [name, encodedBodySize])
)"""


@pytest.fixture
async def context(chrome: Browser, server: GatehouseServer) -> AsyncIterator[BrowserContext]:
    """A context without cached files."""
    empty = await new_context(chrome, server)
    yield empty
    await empty.close()


async def test_the_first_load_with_fonts_and_charts_is_small(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("admin")
    key = api(server, who).post("/api/auth/api-keys", json={"description": "the first load"}).json()["api_key"]
    recorded_call(server, key)
    await page.goto("/console")
    # Both charts are drawn, and the table has a record.
    await expect(page.locator("canvas")).to_have_count(2)
    await expect(page.get_by_role("button", name="Request to echo").first).to_be_visible()
    await page.evaluate("document.fonts.ready")
    await page.wait_for_load_state("networkidle")
    sizes: dict[str, int] = await page.evaluate(LOADED_SIZES)
    for part in ("index-", "OverviewPage-", "plot-", ".css", ".woff2"):
        assert any(part in name for name in sizes), part
    total = sum(sizes.values())
    assert total <= MAX_FIRST_LOAD_BYTES, (total, sorted(sizes.items(), key=lambda item: -item[1]))


@pytest.mark.parametrize("opened_by", ["Enter", "ArrowDown", "pointer"])
async def test_the_menu_of_the_account_is_loaded_when_it_is_used(page: Page, sign_in: SignIn, opened_by: str) -> None:
    await sign_in("user")
    await page.wait_for_load_state("networkidle")
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    button = page.get_by_role("button", name="Account")
    for _ in range(2):
        await expect(button).to_have_attribute("aria-expanded", "false")
        if opened_by == "pointer":
            await button.click()
        else:
            await button.press(opened_by)
        menu = page.get_by_role("menu")
        await expect(menu).to_be_visible()
        assert any("/AccountMenu-" in url for url in loaded)
        await page.keyboard.press("Escape")
        await expect(menu).to_be_hidden()
        await expect(button).to_be_focused()
    await button.press("Enter")
    await expect(page.get_by_role("menuitemradio").first).to_be_focused()
    await page.keyboard.press("End")
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_role("menuitem", name="My security")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="My security")).to_be_visible()


async def test_a_menu_that_cannot_be_loaded_is_reported_and_can_be_opened_later(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await page.route("**/AccountMenu-*.js", lambda route: route.fulfill(status=503))
    await page.get_by_role("button", name="Account").click()
    await expect(page.get_by_text("The menu could not be loaded").first).to_be_visible()
    await page.unroute("**/AccountMenu-*.js")
    await page.get_by_role("button", name="Account").click()
    await expect(page.get_by_role("menu")).to_be_visible()


async def test_a_menu_that_loads_late_leaves_the_focus_where_the_user_is(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/keys")
    requested, answered = asyncio.Event(), asyncio.Event()

    async def delayed(route: Route) -> None:
        requested.set()
        await answered.wait()
        await route.continue_()

    await page.route("**/AccountMenu-*.js", delayed)
    button = page.get_by_role("button", name="Account")
    await button.press("Enter")
    await requested.wait()
    await expect(button).to_have_attribute("aria-busy", "true")
    search = page.get_by_role("searchbox")
    await search.focus()
    answered.set()
    await expect(button).not_to_have_attribute("aria-busy", "true")
    await expect(search).to_be_focused()
    await expect(page.get_by_role("menu")).to_have_count(0)
    await button.press("Enter")
    await expect(page.get_by_role("menu")).to_be_visible()
