"""The console's screen of a user's own usage, in a real browser, with a real server."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.server import GatehouseServer

PHONE = {"width": 390, "height": 844}
#: Returns the colors of opaque pixels. While the chart is redrawn, there are none.
_COLORS = """() => {
  const canvas = document.querySelector("canvas");
  if (canvas === null) return [];
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) colors.add(data.slice(at, at + 3).join());
  return [...colors].sort();
}"""


@pytest.mark.parametrize("role", ["admin", "auditor", "user"])
async def test_everybody_sees_their_own_usage_and_what_is_left_of_their_budgets(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], role: str
) -> None:
    who = await sign_in(role)
    admin = api(server, new_user("admin"))
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
    renewal = page.get_by_role("region", name="What is left of your budgets").locator("time").first
    await expect(renewal).to_have_attribute("title", re.compile("UTC$"))
    row = page.get_by_role("row", name=re.compile("sandbox . echo"))
    await expect(row).to_contain_text("2")
    chart = page.get_by_role("region", name="Requests by day")
    await expect(chart.get_by_role("img", name=re.compile("^Requests: 2 from .* The most: 2"))).to_be_visible()
    await chart.get_by_text("Show as a table").press("Enter")
    days = chart.get_by_role("table").get_by_role("row")
    await expect(days).to_have_count(31)
    await expect(days.last.get_by_role("cell")).to_have_text(["2", "0", "0"])
    await assert_accessible(page)
    await page.get_by_role("link", name="7 days").click()
    await expect(days).to_have_count(8)
    assert parse_qs(urlsplit(page.url).query) == {"period": ["week"]}
    await page.get_by_role("link", name="sandbox / echo").click()
    await expect(page.get_by_role("button", name=re.compile("Request to echo"))).to_have_count(2)
    # Users see only their own requests, and have no filter by user.
    assert ("user=" in page.url) == (role != "user")


async def test_the_overview_shows_requests_and_spend_over_time(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    server.sql("DELETE FROM usage_hours")
    key = api(server, new_user("user")).post("/api/auth/api-keys", json={"description": "calls"}).json()["api_key"]
    recorded_call(server, key, "My card is 4242 4242 4242 4242.")
    server.sql("UPDATE usage_hours SET cost_usd = 0.25")
    await sign_in("auditor", "/console?period=week")
    chart = page.get_by_role("region", name="Requests over time")
    summary = "Requests: 1 from .* DLP acted: 1 from .* Blocked: 0 from"
    await expect(chart.get_by_role("img", name=re.compile(summary))).to_be_visible()
    await expect(page.get_by_role("region", name="Spend over time")).to_contain_text("$0.25")
    # The figures at the top are those of the same period.
    for name, value in (("DLP acted", 1), ("Blocked", 0)):
        figure = page.get_by_role("region", name=name, exact=True)
        await expect(figure).to_contain_text(re.compile(rf"7 days\s*{value}"))
    await chart.get_by_text("Show as a table").press("Enter")
    days = chart.get_by_role("table").get_by_role("row")
    await expect(days).to_have_count(8)
    await expect(days.last.get_by_role("cell")).to_have_text(["1", "1", "0"])
    await check_screen(page)
    await page.get_by_role("link", name="30 days").click()
    await expect(days).to_have_count(31)

    # The chart displays the values at the pointer, and uses the colors of the theme.
    plot = chart.locator(".u-over")
    box = await plot.bounding_box()
    assert box is not None
    await plot.hover(position={"x": box["width"] - 2, "y": 20})
    await expect(chart.locator("dl")).to_contain_text(f"{datetime.now(UTC):%b} {datetime.now(UTC).day}")
    await page.emulate_media(color_scheme="light")
    await page.wait_for_function(f"() => ({_COLORS})().length > 0")
    light = await page.evaluate(_COLORS)
    await page.emulate_media(color_scheme="dark")
    others = f"(light) => {{ const now = ({_COLORS})(); return now.length > 0 && now.join() !== light.join(); }}"
    await page.wait_for_function(others, arg=light)


async def test_users_see_no_series_of_the_organization(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await expect(page.get_by_role("region", name="Providers")).to_be_visible()
    await expect(page.get_by_role("region", name="Requests over time")).to_have_count(0)


async def test_usage_without_a_request_fits_a_phone(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/usage")
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await expect(page.get_by_role("heading", name="No requests in this period")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    await assert_accessible(page)


async def test_a_summary_that_cannot_be_loaded_can_be_tried_again(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await page.route("**/api/v1/usage/summary*", lambda route: route.fulfill(status=403, json={"detail": "Not today."}))
    await page.get_by_role("link", name="My usage").click()
    await expect(page.get_by_role("alert")).to_contain_text("Not today.")
    await page.unroute("**/api/v1/usage/summary*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="No requests in this period")).to_be_visible()
