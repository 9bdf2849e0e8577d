"""Times in the time zone of the viewer, with UTC when the pointer rests on them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Browser, expect
from tests.platform.console.conftest import DESK, OtherUser, api, enter_password, recorded_call
from tests.support.chromium import needs_chromium, page_of
from tests.support.server import GatehouseServer

pytestmark = needs_chromium


@pytest.mark.parametrize(("zone", "offset"), [("Asia/Kolkata", timedelta(hours=5, minutes=30)), ("UTC", timedelta(0))])
async def test_times_are_in_the_viewers_zone_with_utc_on_hover(
    server: GatehouseServer, chrome: Browser, new_user: Callable[[str], OtherUser], zone: str, offset: timedelta
) -> None:
    who = new_user("user")
    client = api(server, who)
    key = client.post("/api/auth/api-keys", json={"description": "times", "expires_in_days": 30}).json()["api_key"]
    recorded_call(server, key)
    (record,) = client.get("/api/v1/usage/records").json()["records"]
    utc = datetime.fromisoformat(record["timestamp"])
    context = await chrome.new_context(base_url=server.url, viewport=DESK, timezone_id=zone)  # type: ignore[arg-type]
    async with page_of(context) as page:
        await page.goto("/console/requests?period=all")
        await enter_password(page, who.email)
        time = page.get_by_role("row").nth(1).locator("time")
        await expect(time).to_contain_text((utc + offset).strftime("%H:%M:%S"))
        await expect(time).to_have_attribute("title", re.compile(utc.strftime(r"^%Y-%m-%d %H:%M:%S(\.\d+)? UTC$")))
        # The fields of a period, and the expiry of a key.
        await page.goto("/console/requests?period=custom&from=2026-03-01T10:00:00.000Z")
        since = page.get_by_label("From", exact=True)
        await expect(since).to_have_value((datetime(2026, 3, 1, 10, tzinfo=UTC) + offset).strftime("%Y-%m-%dT%H:%M"))
        await expect(since).to_have_attribute("title", "2026-03-01 10:00:00.000 UTC")
        await page.goto("/console/keys")
        await page.get_by_role("button", name="Actions for times").click()
        await page.get_by_role("menuitem", name="Edit").click()
        await expect(page.get_by_label("Expires after")).to_have_attribute("title", re.compile("UTC$"))
    await context.close()


async def test_the_hours_of_a_chart_have_utc_on_hover(
    server: GatehouseServer, chrome: Browser, new_user: Callable[[str], OtherUser]
) -> None:
    recorded_call(server, server.key)
    who = new_user("auditor")
    context = await chrome.new_context(base_url=server.url, viewport=DESK, timezone_id="Asia/Kolkata")  # type: ignore[arg-type]
    async with page_of(context) as page:
        await page.goto("/console?period=day")
        await enter_password(page, who.email)
        chart = page.get_by_role("region", name="Requests over time")
        await chart.get_by_text("Show as a table").click()
        hour = chart.get_by_role("table").locator("time").first
        await expect(hour).to_have_text("05:30")
        await expect(hour).to_have_attribute("title", re.compile(r" 00:00:00\.000 UTC$"))
        # The legend names the hour under the pointer in both zones.
        await chart.get_by_role("img").hover()
        await expect(chart.get_by_text(re.compile(r"^\d\d:30 \(\d\d:00 UTC\)$"))).to_be_visible()
    await context.close()
