"""Settings, feature flags, mail domains, allowlist and configuration of the organization in Chromium."""

import asyncio
import re
from collections.abc import Callable
from uuid import uuid4

from playwright.async_api import Locator, Page, Route, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

NAME = "SELECT name FROM tenants WHERE id = %s"


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


async def test_settings_are_changed_and_a_bad_one_is_named(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    ((before,),) = server.sql(NAME, [DEFAULT_TENANT])
    await sign_in("admin", "/console/organization")
    save = panel(page, "Settings").get_by_role("button", name="Save")
    await expect(page.get_by_label("Name", exact=True)).to_have_value(before)
    await expect(save).to_be_disabled()
    await check_screen(page)
    await page.get_by_label("Time zone").fill("Nowhere/Land")
    await save.click()
    await expect(page.get_by_label("Time zone")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("Time zone").fill("UTC")
    for name in ("Analytical Engines", before):
        await page.get_by_label("Name", exact=True).fill(name)
        await save.click()
        await expect(page.get_by_role("complementary").get_by_text(name, exact=True).first).to_be_visible()
        # The form is set to the stored values.
        await expect(save).to_be_disabled()
        assert server.sql(NAME, [DEFAULT_TENANT]) == [(name,)]


async def test_the_second_of_two_concurrent_changes_of_a_filter_and_settings_is_refused(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    """The first administrator changes a filter and the settings while the second has the forms of both open."""
    first = api(server, new_user("admin"))
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
    await panel(page, "Settings").get_by_role("button", name="Save").click()
    await expect(refusal).to_be_visible()
    await expect(page.get_by_label("Time zone")).to_have_value("Europe/Paris")
    await panel(page, "Settings").get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The settings were saved.").first).to_be_visible()
    settings = first.get("/api/v1/admin/org/settings").json()
    assert (settings["timezone"], settings["contact_email"]) == ("Europe/Paris", "second@example.test")
    assert first.put("/api/v1/admin/org/settings", json={"timezone": "UTC", "contact_email": None}).status_code == 200


async def test_the_second_of_two_concurrent_changes_of_sessions_and_oauth_clients_is_refused(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    first = api(server, new_user("admin"))
    refusal = page.get_by_role("alert").filter(has_text="Somebody else has changed it")
    await sign_in("admin", "/console/sign-in")
    sessions = panel(page, "Sessions")
    await sessions.get_by_label("Sign in again after (days)").fill("8")
    path = "/api/v1/admin/org/session-policy"
    before = first.get(path).json()["refresh_token_ttl_days"]
    assert first.put(path, json={"refresh_token_ttl_days": 9}).status_code == 200
    await sessions.get_by_role("button", name="Save").click()
    await expect(refusal).to_be_visible()
    assert first.get(path).json()["refresh_token_ttl_days"] == 9
    await sessions.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The policy was saved.").first).to_be_visible()
    assert first.get(path).json()["refresh_token_ttl_days"] == 8
    assert first.put(path, json={"refresh_token_ttl_days": before}).status_code == 200

    name = f"client {uuid4().hex[:8]}"
    created = first.post("/api/admin/oauth-clients/", json={"name": name}).json()
    path = f"/api/admin/oauth-clients/{created['client_id']}"
    await page.goto("/console/oauth-clients")
    await page.get_by_role("button", name=f"Actions for {name}").click()
    await page.get_by_role("menuitem", name="Edit").click()
    assert first.patch(path, json={"rate_limit_tier": "premium"}).status_code == 200
    await modal(page).get_by_label("Name").fill(f"{name} of the second")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(refusal).to_be_visible()
    assert first.get(path).json()["name"] == name
    assert first.delete(path).status_code < 300


async def test_a_form_is_saved_after_a_feature_was_switched(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    path, contact = "/api/v1/admin/org/settings", page.get_by_label("Contact")
    save = panel(page, "Settings").get_by_role("button", name="Save")
    switch = page.get_by_role("switch", name="Scopes for API keys")
    first = api(server, new_user("admin"))

    async def switch_to(state: str) -> None:
        await switch.click()
        await expect(page.get_by_text(f"Scopes for API keys is {state}.").first).to_be_visible()
        await expect(switch).to_be_checked(checked=state == "on")

    await sign_in("admin", "/console/organization")
    await contact.fill("half@example.test")
    await switch_to("on")
    await expect(contact).to_have_value("half@example.test")
    await save.click()
    await expect(page.get_by_text("The settings were saved.").first).to_be_visible()
    assert first.get(path).json()["contact_email"] == "half@example.test"

    # A switch does not hide what somebody else has changed.
    await contact.fill("second@example.test")
    first.put(path, json={"contact_email": "first@example.test"}).raise_for_status()
    await switch_to("off")
    await save.click()
    await expect(page.get_by_role("alert").filter(has_text="Somebody else has changed it")).to_be_visible()
    assert first.get(path).json()["contact_email"] == "first@example.test"
    first.put(path, json={"contact_email": None}).raise_for_status()


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


async def test_settings_show_where_their_values_come_from(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    server.sql("UPDATE tenants SET session_policy = '{}', mfa_policy = '{}' WHERE id = %s", [DEFAULT_TENANT])
    server.touch("tenant", DEFAULT_TENANT)
    server.settled()
    await sign_in("admin", "/console/organization")
    field = panel(page, "Settings").get_by_label("A session without requests ends after (minutes)")
    await expect(field).to_have_accessible_description("Default.")
    await field.fill("470")
    await panel(page, "Settings").get_by_role("button", name="Save").click()
    await expect(field).to_have_accessible_description("Set by the organization.")
    switch = page.get_by_role("switch", name="Forwarding to a SIEM")
    await expect(switch).to_have_accessible_description(re.compile("Default"))

    await page.goto("/console/sign-in")
    level = panel(page, "Second factors").get_by_label("Who needs one")
    await expect(level).to_have_accessible_description(re.compile("Default"))
    tokens = panel(page, "Sessions").get_by_label("Refresh tokens")
    await expect(tokens).to_have_accessible_description(re.compile("Default"))
    await tokens.uncheck()
    await panel(page, "Sessions").get_by_role("button", name="Save").click()
    await expect(tokens).to_have_accessible_description(re.compile("Set by the organization"))
    answer = api(server, new_user("auditor")).get("/api/v1/admin/org/session-policy").json()
    assert (answer["refresh_token_enabled"], answer["sources"]["refresh_token_enabled"]) == (False, "organization")
    server.sql("UPDATE tenants SET session_policy = '{}' WHERE id = %s", [DEFAULT_TENANT])
    server.touch("tenant", DEFAULT_TENANT)


RESET = "UPDATE tenants SET ip_allowlist = '{}', request_fields = '{}', dlp_sampling = '{}' WHERE id = %s"


async def test_the_allowlist_and_the_request_fields_show_where_their_values_come_from(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    server.sql(RESET, [DEFAULT_TENANT])
    server.touch("tenant", DEFAULT_TENANT)
    server.settled()
    await sign_in("admin", "/console/organization")
    addresses = panel(page, "IP allowlist").get_by_role("textbox", name="Addresses")
    await expect(addresses).to_have_accessible_description(re.compile("Default"))
    await addresses.fill("192.0.2.0/24")
    await panel(page, "IP allowlist").get_by_role("button", name="Save").click()
    await expect(addresses).to_have_accessible_description(re.compile("Set by the organization"))
    fields = panel(page, "Request fields")
    await expect(fields).to_contain_text(re.compile("Default.*passed to the provider. Default"))
    await fields.get_by_role("checkbox", name=re.compile("service_tier")).check()
    await fields.get_by_role("button", name="Save").click()
    await expect(fields).to_contain_text("Set by the organization.")
    await page.goto("/console/dlp-rules/replay")
    await expect(page.get_by_role("region", name="Recorded requests", exact=True)).to_contain_text("Default.")
    server.sql(RESET, [DEFAULT_TENANT])
    server.touch("tenant", DEFAULT_TENANT)


async def test_an_entry_of_the_configuration_is_changed(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    server.sql("DELETE FROM system_config WHERE tenant_id = %s", [DEFAULT_TENANT])
    await sign_in("admin", "/console/organization")
    entries = panel(page, "Configuration").get_by_role("listitem")
    await expect(entries.filter(has_text="api_variant")).to_contain_text("for the whole platform")
    await expect(entries.filter(has_text="api_variant").get_by_role("button")).to_have_count(0)
    messages = entries.filter(has_text="max_conversation_messages")
    await expect(messages).to_contain_text("1000Default.")
    await messages.get_by_role("button", name="Edit max_conversation_messages").click()
    await modal(page).get_by_label("Value").fill("none")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(modal(page).get_by_label("Value")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    await modal(page).get_by_label("Value").fill("900")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(messages).to_contain_text("900Set by the organization.")
    await page.get_by_role("button", name="Edit registry_enforcement").press("Enter")
    await modal(page).get_by_label("Value").select_option("warn")
    await modal(page).get_by_role("button", name="Save").click()
    await expect(entries.filter(has_text="registry_enforcement")).to_contain_text("warnSet by the organization.")
    stored = server.sql("SELECT key, value FROM system_config WHERE tenant_id = %s ORDER BY key", [DEFAULT_TENANT])
    assert stored == [("max_conversation_messages", "900"), ("registry_enforcement", "warn")]
    server.sql("DELETE FROM system_config WHERE tenant_id = %s", [DEFAULT_TENANT])
    server.touch("policy", DEFAULT_TENANT)


async def test_the_allowlist_is_set_and_does_not_exclude_the_administrator(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/organization")
    allowlist = panel(page, "IP allowlist")
    addresses = allowlist.get_by_label("Addresses", exact=True)
    await allowlist.get_by_label("Accept credentials from these addresses only").check()
    await addresses.fill("everywhere")
    await allowlist.get_by_role("button", name="Save").click()
    await expect(addresses).to_have_attribute("aria-invalid", "true")
    await addresses.fill("192.0.2.7/24")
    await allowlist.get_by_role("button", name="Save").click()
    await expect(allowlist.get_by_role("alert")).to_contain_text("you would lock yourself out")
    await addresses.fill("192.0.2.7/24\n127.0.0.0/8")
    await allowlist.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The allowlist was saved.").first).to_be_visible()
    await expect(addresses).to_have_value("192.0.2.0/24\n127.0.0.0/8")
    query = "SELECT ip_allowlist FROM tenants WHERE id = %s"
    cidrs = ["192.0.2.0/24", "127.0.0.0/8"]
    ((stored,),) = server.sql(query, [DEFAULT_TENANT])
    assert (stored["enabled"], stored["cidrs"]) == (True, cidrs)
    await allowlist.get_by_label("Accept credentials from these addresses only").uncheck()
    async with page.expect_response(lambda response: response.request.method == "PUT"):
        await allowlist.get_by_role("button", name="Save").click()
    ((stored,),) = server.sql(query, [DEFAULT_TENANT])
    assert (stored["enabled"], stored["cidrs"]) == (False, cidrs)

    # Somebody else changes the list while it is edited.
    await addresses.fill("198.51.100.0/24")
    others = "jsonb_set(ip_allowlist, '{cidrs}', '[\"203.0.113.0/24\"]')"
    server.sql(f"UPDATE tenants SET ip_allowlist = {others}, updated_at = now() WHERE id = %s", [DEFAULT_TENANT])
    await allowlist.get_by_role("button", name="Save").click()
    await expect(allowlist.get_by_role("alert")).to_contain_text("Somebody else has changed it")
    await expect(allowlist.get_by_role("status")).to_contain_text("203.0.113.0/24")
    await expect(addresses).to_have_value("198.51.100.0/24")
    ((stored,),) = server.sql(query, [DEFAULT_TENANT])
    assert stored["cidrs"] == ["203.0.113.0/24"]
    # The next attempt replaces the other administrator's list.
    await allowlist.get_by_role("button", name="Save").click()
    await expect(allowlist.get_by_role("status")).to_have_count(0)
    ((stored,),) = server.sql(query, [DEFAULT_TENANT])
    assert stored["cidrs"] == ["198.51.100.0/24"]


async def test_request_fields_are_allowed_and_refused_again(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    await sign_in("admin", "/console/organization")
    fields = panel(page, "Request fields")
    await fields.get_by_label("Search allowed fields").fill("service_tier")
    await fields.get_by_role("checkbox", name="service_tier").check()
    await fields.get_by_label("Further names").fill("not a name")
    await fields.get_by_role("button", name="Save").click()
    await expect(fields.get_by_role("alert").first).to_be_visible()
    await fields.get_by_label("Further names").fill("tools.web_search")
    await fields.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The allowed fields were saved.").first).to_be_visible()
    query = "SELECT request_fields FROM tenants WHERE id = %s"
    assert server.sql(query, [DEFAULT_TENANT]) == [({"allowed": ["service_tier", "tools.web_search"]},)]
    await page.reload()
    for name in ("service_tier", "tools.web_search"):
        await fields.get_by_role("checkbox", name=name).uncheck()
    async with page.expect_response(lambda response: response.request.method == "PUT"):
        await fields.get_by_role("button", name="Save").click()
    assert server.sql(query, [DEFAULT_TENANT]) == [({"allowed": []},)]


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
    await expect(row).to_contain_text("Not verified")
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


async def test_a_list_whose_first_load_is_under_way_shows_what_was_added(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    """The response to the first load is from before the change, and arrives after the change."""
    domain = f"{uuid4().hex[:10]}.test"
    loads: list[Route] = []
    added = asyncio.Event()

    async def hold_first_load(route: Route) -> None:
        loads.append(route)
        if route.request.method != "GET" or len(loads) > 1:
            await route.continue_()
            return
        answer = await route.fetch()
        await added.wait()
        await route.fulfill(response=answer)

    await page.route("**/api/v1/admin/org/allowed-domains", hold_first_load)
    await sign_in("admin", "/console/organization")
    await page.get_by_role("button", name="Add domain").click()
    await modal(page).get_by_label("Domain").fill(domain)
    async with page.expect_response(lambda response: response.request.method == "POST"):
        await modal(page).get_by_role("button", name="Add domain").click()
    added.set()
    await expect(modal(page)).to_be_hidden()
    await expect(page.get_by_role("listitem").filter(has_text=domain)).to_be_visible()
    server.sql("DELETE FROM allowed_domains WHERE domain = %s", [domain])


async def test_auditors_can_read_everything_and_change_nothing(page: Page, sign_in: SignIn) -> None:
    await sign_in("auditor", "/console/organization")
    await expect(page.get_by_role("switch", name="Data-loss prevention")).to_be_disabled()
    await expect(page.get_by_role("button", name=re.compile("Save|Edit"))).to_have_count(0)
    await expect(panel(page, "IP allowlist").get_by_label("Addresses", exact=True)).to_be_disabled()
    await expect(panel(page, "Configuration").get_by_role("listitem").first).to_be_visible()
    await expect(page.get_by_role("button", name="Add domain")).to_have_count(0)


async def test_auditors_see_what_a_domain_permits(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    domain = f"{uuid4().hex[:8]}.example.test"
    server.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, jit_provisioning) VALUES (%s, %s, true)",
        [DEFAULT_TENANT, domain],
    )
    try:
        await sign_in("auditor", "/console/organization")
        row = page.get_by_role("listitem").filter(has_text=domain)
        provisioning = row.get_by_label("Single sign-on makes accounts for its addresses")
        registration = row.get_by_label("People may register themselves with its addresses")
        await expect(provisioning).to_be_checked()
        await expect(registration).not_to_be_checked()
        for box in (provisioning, registration):
            await expect(box).to_be_disabled()
        await check_screen(page)
    finally:
        server.sql("DELETE FROM allowed_domains WHERE domain = %s", [domain])
