"""Settings, feature flags and mail domains of the organization in Chromium."""

from uuid import uuid4

from playwright.async_api import Page, expect
from tests.platform.console.conftest import SignIn, check_screen, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

NAME = "SELECT name FROM tenants WHERE id = %s"


async def test_settings_are_changed_and_a_bad_one_is_named(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    ((before,),) = server.sql(NAME, [DEFAULT_TENANT])
    await sign_in("admin", "/console/organization")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await check_screen(page)
    await page.get_by_label("Time zone").fill("Nowhere/Land")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("Time zone")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("Time zone").fill("UTC")
    for name in ("Analytical Engines", before):
        await page.get_by_label("Name", exact=True).fill(name)
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("complementary").get_by_text(name, exact=True).first).to_be_visible()
        assert server.sql(NAME, [DEFAULT_TENANT]) == [(name,)]


async def test_a_switched_feature_leaves_a_half_edited_form_alone(page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/organization")
    await page.get_by_label("Name", exact=True).fill("Half a na")
    switch = page.get_by_role("switch", name="Scopes for API keys")
    for state in ("on", "off"):
        await switch.click()
        await expect(page.get_by_text(f"Scopes for API keys is {state}.").first).to_be_visible()
        await expect(switch).to_be_checked(checked=state == "on")
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Half a na")


async def test_a_feature_is_switched_by_keyboard(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/organization")
    switch = page.get_by_role("switch", name="Scopes for API keys")
    await expect(switch).not_to_be_checked()
    await switch.focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_text("Scopes for API keys is on.").first).to_be_visible()
    await page.reload()
    await expect(switch).to_be_checked()
    await page.keyboard.press("Tab")
    await switch.focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_text("Scopes for API keys is off.").first).to_be_visible()
    await expect(switch).not_to_be_checked()


async def test_a_domain_is_added_checked_and_removed(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    await sign_in("admin", "/console/organization")
    await page.get_by_role("button", name="Add domain").click()
    dialog = modal(page)
    await dialog.get_by_label("Domain").fill("not a domain")
    await dialog.get_by_role("button", name="Add domain").click()
    await expect(dialog.get_by_label("Domain")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Domain").fill(domain)
    await dialog.get_by_role("button", name="Add domain").click()
    row = page.get_by_role("listitem").filter(has_text=domain)
    await expect(row).to_contain_text("Not proven")
    query = "SELECT self_registration FROM allowed_domains WHERE domain = %s"
    await row.get_by_label("People may register themselves").click()
    await expect(row.get_by_label("People may register themselves")).to_be_checked()
    assert server.sql(query, [domain]) == [(True,)]
    await check_screen(page)
    await row.get_by_role("button", name=f"Actions for {domain}").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await dialog.get_by_role("button", name="Remove domain").click()
    await expect(dialog).to_be_hidden()
    await expect(row).to_have_count(0)
    assert server.sql(query, [domain]) == []


async def test_auditors_look_and_change_nothing(page: Page, sign_in: SignIn) -> None:
    await sign_in("auditor", "/console/organization")
    await expect(page.get_by_role("switch", name="Data-loss prevention")).to_be_disabled()
    await expect(page.get_by_role("button", name="Save")).to_have_count(0)
    await expect(page.get_by_role("button", name="Add domain")).to_have_count(0)
