"""System, SIEM, retention and outposts in Chromium: the main task of each, by clicking."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import Colleague, SignIn, api, check_screen, enter_password, is_accessible, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

MAINTENANCE = "/api/admin/system/maintenance"


@pytest.fixture
def sign_in_operator(
    server: GatehouseServer, page: Page, colleague: Callable[[str], Colleague]
) -> Callable[[str], Awaitable[Colleague]]:
    """Sign an operator of the platform in, up to the console's `path`."""

    async def signed_in(path: str) -> Colleague:
        who = colleague("admin")
        server.sql("UPDATE users SET operator = true WHERE id = %s", [who.id])
        server.touch("user", who.id)
        server.settled()
        await page.goto(path)
        await enter_password(page, who.email)
        await expect(page.get_by_role("button", name="Account")).to_be_visible()
        return who

    return signed_in


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


# system -------------------------------------------------------------------------------------------------------------


async def test_an_operator_closes_the_platform_and_opens_it_again(
    server: GatehouseServer, page: Page, sign_in_operator: Callable[[str], Awaitable[Colleague]]
) -> None:
    operator = api(server, await sign_in_operator("/console/system"))
    maintenance, dialog = panel(page, "Maintenance"), modal(page)
    await expect(maintenance).to_contain_text("Requests are answered.")
    await check_screen(page)
    await maintenance.get_by_role("button", name="Start maintenance").press("Enter")
    await dialog.get_by_label("Wait for calls").fill("9000")
    await dialog.get_by_role("button", name="Start maintenance").click()
    await expect(dialog.get_by_label("Wait for calls")).to_have_attribute("aria-invalid", "true")
    await is_accessible(page)
    await dialog.get_by_label("Wait for calls").fill("0")
    await dialog.get_by_label("Message").fill("Back at noon.")
    await page.keyboard.press("Enter")
    try:
        await expect(maintenance).to_contain_text("New requests of all organizations are refused")
        await expect(maintenance).to_contain_text("Message: Back at noon.")
        refused = httpx2.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {server.key}"})
        assert (refused.status_code, refused.json()["message"]) == (503, "Back at noon.")
        # The console works during maintenance, also after it is loaded anew.
        await page.reload()
        await maintenance.get_by_role("button", name="Change message").click()
        await dialog.get_by_label("Message").fill("Back at two.")
        await dialog.get_by_role("button", name="Save").click()
        await expect(maintenance).to_contain_text("Message: Back at two.")
        await check_screen(page)
        await maintenance.get_by_role("button", name="End maintenance").press("Enter")
        await dialog.get_by_role("button", name="End maintenance").press("Enter")
        await expect(maintenance).to_contain_text("Requests are answered.")
        assert operator.get(MAINTENANCE).json()["maintenance_enabled"] is False
    finally:
        operator.post(MAINTENANCE, json={"enabled": False})
    answered = httpx2.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {server.key}"})
    assert answered.status_code == 200


async def test_an_operator_sees_workers_and_what_to_do(
    server: GatehouseServer, page: Page, sign_in_operator: Callable[[str], Awaitable[Colleague]]
) -> None:
    await sign_in_operator("/console")
    silent = f"machine-{uuid4().hex[:8]}"
    server.sql(
        "INSERT INTO nodes (id, name, kind, pid, host, revision, seen_at)"
        " VALUES (%s, %s, 'gateway', 1, 'x', 0, now() - interval '1 minute')",
        [uuid4(), silent],
    )
    await page.get_by_role("navigation", name="Main").get_by_role("link", name="System").click()
    workers, checks = page.get_by_role("table", name="Workers"), page.get_by_role("list", name="Checks")
    row = workers.get_by_role("row").filter(has_text=silent)
    await expect(row).to_contain_text("Silent for")
    await expect(row).to_contain_text("behind)")
    await expect(workers.get_by_role("row").filter(has_text="Keeper")).to_contain_text("Seen")
    check = checks.get_by_role("listitem").filter(has_text="Workers")
    await expect(check).to_contain_text(silent)
    await expect(check).to_contain_text("To do: look at their logs; restart what is stuck")
    await expect(page.get_by_role("list", name="Components")).to_contain_text("Database")
    await check_screen(page)
    server.sql("DELETE FROM nodes WHERE name = %s", [silent])
    await panel(page, "Checks").get_by_role("button", name="Check again").click()
    await expect(check).to_contain_text("all that should be there were seen")
    await expect(row).to_have_count(0)
    await expect(panel(page, "Versions")).to_contain_text("Database schema")


# who sees what ------------------------------------------------------------------------------------------------------


async def test_auditors_see_everything_and_change_nothing_and_users_are_not_led_there(
    page: Page, sign_in: SignIn
) -> None:
    navigation = page.get_by_role("navigation", name="Main")
    await sign_in("auditor")
    await navigation.get_by_role("link", name="System").click()
    await expect(panel(page, "Maintenance")).to_contain_text("Only operators of the platform can change this.")
    await expect(page.get_by_role("list", name="Checks")).to_contain_text("Master key")
    await expect(page.get_by_role("button", name="maintenance")).to_have_count(0)
    await expect(panel(page, "Workers")).to_contain_text("processes were seen in the last two minutes")
    await check_screen(page)

    await page.context.clear_cookies()
    await sign_in("user")
    for entry in ("System",):
        await expect(navigation.get_by_role("link", name=entry)).to_have_count(0)
    await page.goto("/console/system")
    await expect(page.get_by_role("alert").first).to_be_visible()
