"""Settings, feature flags and mail domains of the organization in Chromium."""

from collections.abc import Callable
from uuid import uuid4

from playwright.async_api import Page, expect
from tests.platform.console.conftest import Colleague, SignIn, api, check_screen, modal
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


async def test_the_second_of_two_administrators_is_told(
    server: GatehouseServer, page: Page, sign_in: SignIn, colleague: Callable[[str], Colleague]
) -> None:
    """The first changes a filter and the settings while the second has their forms open."""
    first = api(server, colleague("admin"))
    name = f"Words {uuid4().hex[:8]}"
    body = {
        "name": name,
        "filter_type": "keyword_block",
        "config": {"keywords": ["word"]},
        "scope": "org",
        "priority": 1,
    }
    path = f"/api/admin/content-filters/{first.post('/api/admin/content-filters/', json=body).json()['id']}"
    refusal = page.get_by_role("alert").filter(has_text="Somebody else has changed it")

    await sign_in("admin", "/console/content-filters")
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name="Edit").click()
    assert first.put(path, json={"description": "by the first"}).status_code == 200
    await modal(page).get_by_label("Description").fill("by the second")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(refusal).to_be_visible()
    assert first.get(path).json()["description"] == "by the first"
    await modal(page).get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name="Edit").click()
    await expect(modal(page).get_by_label("Description")).to_have_value("by the first")
    await modal(page).get_by_label("Description").fill("by the second")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(modal(page)).to_be_hidden()
    assert first.delete(path).status_code < 300

    await page.goto("/console/organization")
    await page.get_by_label("Contact").fill("second@example.test")
    assert first.put("/api/v1/admin/org/settings", json={"timezone": "Europe/Paris"}).status_code == 200
    await page.get_by_role("button", name="Save").click()
    await expect(refusal).to_be_visible()
    await expect(page.get_by_label("Time zone")).to_have_value("Europe/Paris")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The settings were saved.").first).to_be_visible()
    settings = first.get("/api/v1/admin/org/settings").json()
    assert (settings["timezone"], settings["contact_email"]) == ("Europe/Paris", "second@example.test")
    assert first.put("/api/v1/admin/org/settings", json={"timezone": "UTC", "contact_email": None}).status_code == 200


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
