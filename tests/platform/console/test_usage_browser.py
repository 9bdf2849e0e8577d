"""The console's screen of one's own usage, in a real browser, against a real server."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, expect
from tests.platform.console.conftest import Colleague, SignIn, api, is_accessible, recorded_call
from tests.support.server import GatehouseServer

PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("role", ["admin", "auditor", "user"])
async def test_everybody_sees_their_own_usage_and_what_is_left_of_their_budgets(
    server: GatehouseServer, page: Page, sign_in: SignIn, colleague: Callable[[str], Colleague], role: str
) -> None:
    who = await sign_in(role)
    admin = api(server, colleague("admin"))
    budget = {"scope_type": "user", "scope_id": str(who.id), "period": "month", "limit_requests": 20, "limit_usd": 1}
    assert admin.post("/api/admin/budgets", json=budget).status_code == 201
    key = api(server, who).post("/api/auth/api-keys", json={"description": "own"}).json()["api_key"]
    for _ in range(2):
        recorded_call(server, key)
    await page.get_by_role("link", name="My usage").click()
    await expect(page.get_by_role("heading", name="My usage", level=1)).to_be_visible()
    await expect(page.get_by_role("region", name="Requests", exact=True)).to_contain_text("2")
    await expect(page.get_by_role("list").get_by_text("18 of 20 requests left")).to_be_visible()
    await expect(page.get_by_text("$1.00 of $1.00 left")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("sandbox . echo"))
    await expect(row).to_contain_text("2")
    await expect(page.get_by_role("list", name="Requests by day").get_by_role("listitem")).to_have_count(30)
    await is_accessible(page)
    await page.get_by_role("link", name="7 days").click()
    await expect(page.get_by_role("list", name="Requests by day").get_by_role("listitem")).to_have_count(7)
    assert parse_qs(urlsplit(page.url).query) == {"period": ["week"]}
    await page.get_by_role("link", name="sandbox / echo").click()
    await expect(page.get_by_role("button", name=re.compile("Request to echo"))).to_have_count(2)


async def test_usage_without_a_request_fits_a_phone(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/usage")
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await expect(page.get_by_role("heading", name="No requests in this period")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await is_accessible(page)


async def test_a_summary_that_cannot_be_loaded_can_be_tried_again(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await page.route("**/api/v1/usage/summary*", lambda route: route.fulfill(status=403, json={"detail": "Not today."}))
    await page.get_by_role("link", name="My usage").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not today.")
    await page.unroute("**/api/v1/usage/summary*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="No requests in this period")).to_be_visible()
