"""Times in the time zone of the viewer, with UTC when the pointer rests on them."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

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
    key = client.post("/api/auth/api-keys", json={"description": "times"}).json()["api_key"]
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
    await context.close()
