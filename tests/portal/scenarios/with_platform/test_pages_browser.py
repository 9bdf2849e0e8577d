"""The portal's pages in a real browser: by keyboard, on a phone, without scripts, under their policy."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.support import chromium
from tests.support.accessibility import assert_accessible, needs_axe
from tests.support.chromium import PHONE, needs_chromium, page_of
from tests.support.portal import RunningPortal
from tests.support.surfer import Person
from tests.support.town import Provisioned, Town

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id

pytestmark = needs_chromium


@pytest.fixture(scope="module")
async def chrome() -> AsyncIterator[Browser]:
    async with chromium.browser() as started:
        yield started


@pytest.fixture(params=["with scripts", "without scripts"])
async def context(
    chrome: Browser, portal: RunningPortal, request: pytest.FixtureRequest
) -> AsyncIterator[BrowserContext]:
    new_context = await chrome.new_context(
        base_url=portal.host.settings.portal_public_url,
        java_script_enabled=request.param == "with scripts",
        viewport=PHONE if request.param == "without scripts" else None,  # type: ignore[arg-type]
    )
    yield new_context
    await new_context.close()


@pytest.fixture
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    async with page_of(context) as opened:
        yield opened


async def sign_in(page: Page, who: Person) -> None:
    await page.goto("/")
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_label("E-mail or user name").fill(who.email)
    await page.get_by_label("Password", exact=True).fill(who.password)
    await page.keyboard.press("Enter")


def outpost(portal: RunningPortal, org: Provisioned) -> None:
    """Creates an outpost without a recent heartbeat, and its notification."""
    outpost_id, now = new_id(), utc_now()
    columns = "id, org_id, outpost_name, region, deployment_env, cert_serial, cert_issued_at, cert_expires_at"
    portal.sql(
        f"INSERT INTO outposts ({columns}, last_seen_at) VALUES (%s, %s, 'warehouse-1', 'eu-central-1', 'production',"
        " %s, %s, %s, %s)",
        [outpost_id, org.id, f"{new_id().int:x}", now, now + timedelta(days=90), now - timedelta(minutes=9)],
    )
    portal.sql(
        "INSERT INTO notifications (id, org_id, type, severity, message, subject_id)"
        " VALUES (%s, %s, 'outpost_stale', 'warning', 'The outpost warehouse-1 is not seen.', %s)",
        [new_id(), org.id, outpost_id],
    )


async def fits(page: Page) -> bool:
    """Checks that no content exceeds the width of the screen."""
    size = page.viewport_size
    boxes = [await item.bounding_box() for item in await page.locator("body, body *").all()]
    return size is not None and max(box["x"] + box["width"] for box in boxes if box) <= size["width"]


async def test_a_person_signs_in_sees_the_dashboard_and_signs_out(
    portal: RunningPortal, new_org: Provisioned, page: Page
) -> None:
    outpost(portal, new_org)
    await sign_in(page, new_org.owner)
    await expect(page.get_by_role("heading", name=new_org.name)).to_be_visible()
    notifications = page.get_by_role("region", name="Notifications")
    await expect(notifications.get_by_text("The outpost warehouse-1 is not seen.")).to_be_visible()
    row = page.get_by_role("region", name="Outposts").locator("tbody tr")
    await expect(row).to_contain_text("warehouse-1")
    await expect(row).to_contain_text("stale")
    assert await fits(page)
    cookies = {cookie["name"]: cookie for cookie in await page.context.cookies()}
    cookie = cookies["gatehouse_portal"]
    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Lax", "/")
    assert "gatehouse_portal_sign_in" not in cookies
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("status")).to_contain_text("You are signed out here.")
    assert "gatehouse_portal" not in {cookie["name"] for cookie in await page.context.cookies()}
    await page.get_by_role("link", name="Use another account").click()
    await expect(page.get_by_label("E-mail or user name")).to_be_visible()


async def test_the_pages_can_be_used_with_the_keyboard(new_org: Provisioned, page: Page) -> None:
    await sign_in(page, new_org.owner)
    await expect(page.get_by_role("heading", name=new_org.name)).to_be_visible()
    for name in ("Skip to the content", "Dashboard", "Settings"):
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name=name)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    await page.get_by_label("Name of the organization").focus()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("Difference Engines")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    await expect(page.get_by_label("Name of the organization")).to_have_value("Difference Engines")
    assert await fits(page)


async def test_an_export_is_uploaded_in_the_settings(new_org: Provisioned, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "outpost-config.json"
    rule = {"name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "action": "block"}
    file.write_text(json.dumps({"version": "1.0", "patterns": ["email", "acme-contract"], "dlp_rules": [rule]}))
    await sign_in(page, new_org.owner)
    await page.get_by_role("link", name="Settings").click()
    await page.get_by_label("File").set_input_files(file)
    await expect(page.get_by_label("Only show what would be done")).to_be_checked()
    await page.get_by_role("button", name="Import").click()
    await expect(page.get_by_role("status")).to_contain_text("This would be done: 1 imported")
    await expect(page.get_by_text("acme-contract")).to_be_visible()
    await page.get_by_label("File").set_input_files(file)
    await page.get_by_label("Only show what would be done").uncheck()
    await page.get_by_role("button", name="Import").click()
    await expect(page.get_by_role("status")).to_contain_text("Done: 1 imported")
    await page.get_by_text("Imported", exact=True).click()
    await expect(page.get_by_text("dlp_rules: Cards")).to_be_visible()
    assert await fits(page)


async def test_the_selector_and_an_invitation(
    town: Town, org: Provisioned, second_org: Provisioned, page: Page
) -> None:
    person = town.person(org)
    await sign_in(page, person)
    await expect(page.get_by_role("status")).to_contain_text("not a member of any organization")
    field = page.get_by_label("Token of the invitation")
    await expect(field).to_be_focused()
    await field.fill("inv_made-up")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("The invitation does not exist")
    await page.get_by_label("Token of the invitation").fill(await town.invite(org, person.email))
    await page.get_by_role("button", name="Join").click()
    await expect(page.get_by_role("heading", name=org.name)).to_be_visible()
    town.join(second_org, person)
    await page.reload()
    await page.get_by_role("link", name="Another organization").click()
    await expect(page.get_by_role("heading", name="Which organization?")).to_be_visible()
    await page.get_by_role("button", name=second_org.name).click()
    await expect(page.get_by_role("heading", name=second_org.name)).to_be_visible()
    assert await fits(page)


async def test_an_unknown_page_is_reported_and_no_foreign_content_is_loaded(page: Page) -> None:
    for path, status in (("/dashboard/nowhere", 404), ("/v1/auth/sso/callback?code=x&state=y", 400), ("/login", 200)):
        answer = await page.goto(path)
        assert answer is not None
        headers = await answer.all_headers()
        assert (answer.status, headers["content-type"]) == (status, "text/html; charset=utf-8")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "same-origin"
        await expect(page.locator("h1")).to_be_visible()


@needs_axe
async def test_every_page_passes_the_accessibility_checks(
    chrome: Browser, portal: RunningPortal, town: Town, new_org: Provisioned, second_org: Provisioned, tmp_path: Path
) -> None:
    """Every page is checked in the light and in the dark theme, and some pages also with their error messages."""
    outpost(portal, new_org)
    person = new_org.owner
    file = tmp_path / "outpost-config.json"
    rule = {"name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "action": "block"}
    file.write_text(json.dumps({"version": "1.0", "patterns": ["email", "acme-contract"], "dlp_rules": [rule]}))
    new_context = await chrome.new_context(base_url=portal.host.settings.portal_public_url)
    async with page_of(new_context) as page:
        for path in ("/login", "/dashboard/nowhere", "/v1/auth/sso/callback?code=x&state=y"):
            await page.goto(path)
            await assert_accessible(page)
        await sign_in(page, person)
        await expect(page.get_by_role("region", name="Outposts").locator("tbody tr")).to_contain_text("warehouse-1")
        await assert_accessible(page)
        await page.get_by_role("link", name="Settings").click()
        await page.get_by_label("File").set_input_files(file)
        await page.get_by_role("button", name="Import").click()
        await expect(page.get_by_role("status")).to_contain_text("This would be done")
        await page.get_by_text("Imported", exact=True).click()
        await assert_accessible(page)
        await page.goto("/invitation")
        await page.get_by_label("Token of the invitation").fill("inv_made-up")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        await assert_accessible(page)
        town.join(second_org, person)
        await page.goto("/organizations")
        await expect(page.get_by_role("heading", name="Which organization?")).to_be_visible()
        await assert_accessible(page)
        await page.goto("/dashboard")
        await page.get_by_role("button", name="Sign out").click()
        await assert_accessible(page)
    await new_context.close()
