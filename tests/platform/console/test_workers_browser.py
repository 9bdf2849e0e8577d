"""A platform with several workers and settings in its environment, in Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect
from tests.platform.console.conftest import TIERS, SignIn, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = [needs_chromium, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(console: Path) -> Iterator[GatehouseServer]:
    env = {"RATE_LIMIT_TIERS": TIERS, "MAX_CONVERSATION_MESSAGES": "500", "UNKNOWN_FIELDS": "refuse"}
    with GatehouseServer(workers=3, env=env) as running:
        running.settled()
        yield running


async def over_new_connection(route: Route) -> None:
    """Send a request over its own connection, because a frozen worker does not answer on those that it has accepted."""
    answer = await route.fetch(headers={**route.request.headers, "connection": "close"})
    await route.fulfill(response=answer)


async def test_a_kill_switch_is_pending_until_each_worker_has_confirmed_it(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/kill-switches?search=sandbox")
    latest = page.get_by_role("region", name="Latest changes").get_by_role("listitem").first
    await page.route("**/api/v1/admin/kill-switch/**", over_new_connection)
    stop = page.get_by_role("button", name=re.compile("Stop Echo"))
    # A request that a frozen worker has accepted gets no answer.
    await expect(stop).to_be_visible()
    frozen = server.workers[1]
    frozen.suspend()
    try:
        await stop.click()
        await modal(page).get_by_role("button", name="Stop now").click()
        await expect(page.get_by_text("is stopped on 2 of 3 workers.").first).to_be_visible()
        await expect(modal(page)).to_have_count(0)
        await expect(latest).to_contain_text("2 of 3 workers")
        await expect(latest).to_contain_text(re.compile(rf"Waiting for \S+-{frozen.pid}\b"))
    finally:
        frozen.resume()
    # The page loads the state again by itself.
    await expect(latest).to_contain_text("3 of 3 workers")
    await expect(latest).not_to_contain_text("Waiting for")
    await page.get_by_role("button", name=re.compile("Release Echo")).click()
    await modal(page).get_by_role("button", name="Release now").click()
    await expect(page.get_by_role("button", name=re.compile("Stop Echo"))).to_be_visible()


async def test_a_setting_of_the_environment_is_shown_until_the_organization_has_its_own(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/organization")
    await expect(page.get_by_role("region", name="Request fields", exact=True)).to_contain_text(
        "Set by the environment."
    )
    entry = (
        page.get_by_role("region", name="Configuration", exact=True)
        .get_by_role("listitem")
        .filter(has_text="max_conversation_messages")
    )
    await expect(entry).to_contain_text("500Set by the environment.")
    field = modal(page).get_by_label("Value", exact=True)
    await entry.get_by_role("button").click()
    await expect(field).to_have_accessible_description(re.compile("Set by the environment"))
    await field.fill("600")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(entry).to_contain_text("600Set by the organization.")
