"""The pages about DLP in Chromium: versions of rules, custom patterns, suppressions and replays, by clicking."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Final

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, call_model, check_screen, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

RULES: Final = "/api/admin/dlp-rules/"
PATTERNS: Final = "/api/admin/dlp-rules/custom-patterns"
SUPPRESSIONS: Final = "/api/admin/dlp-rules/suppressions"
SAMPLES: Final = "/api/admin/dlp-rules/samples"
SAMPLING: Final = "/api/v1/admin/org/dlp-sampling"
RULE: Final = {
    "detector_name": "Projects", "detector_type": "regex", "entity_type": "project", "action_tier": "log_only",
    "config_json": {"pattern": "Aurora-[0-9]+"},
}  # fmt: skip


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> Iterator[httpx2.Client]:
    """An administrator's client. At its end the organization has no rules, patterns, suppressions and samples."""
    client = api(server, new_user("admin"))
    yield client
    for path in (RULES, PATTERNS, SUPPRESSIONS):
        for row in client.get(path).json():
            client.delete(f"{path.rstrip('/')}/{row['id']}").raise_for_status()
    client.put(SAMPLING, json={"share": 0}).raise_for_status()
    server.sql("DELETE FROM dlp_samples")


@pytest.fixture
def key(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> str:
    answer = api(server, new_user("user")).post("/api/auth/api-keys", json={"description": "calls"})
    new_key: str = answer.json()["api_key"]
    return new_key


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def record_samples(server: GatehouseServer, admin: httpx2.Client, key: str, *contents: str) -> None:
    """Call a model with each content, and wait until all calls are stored as samples."""
    admin.put(SAMPLING, json={"share": 1}).raise_for_status()
    for content in contents:
        call_model(server, key, content)
    deadline = time.monotonic() + 60
    while admin.get(SAMPLES).json()["total"] < len(contents):
        assert time.monotonic() < deadline, "not all samples were stored"
        time.sleep(0.05)


async def test_versions_show_what_changed_and_an_earlier_one_is_restored(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    rule = admin.post(RULES, json=RULE).json()
    changes = {"action_tier": "block", "config_json": {"pattern": "Borealis-[0-9]+"}}
    admin.put(f"{RULES}{rule['id']}", json=changes).raise_for_status()
    who = await sign_in("admin", "/console/dlp-rules")
    await page.get_by_role("button", name="Open the versions of Projects").press("Enter")
    dialog = modal(page)
    versions = dialog.get_by_role("list", name="Versions, newest first").get_by_role("listitem")
    await expect(versions).to_have_count(2)
    await expect(versions.nth(0)).to_contain_text("Current")
    await expect(versions.nth(0).locator("del")).to_have_text(["Before: Log only", "Before: Aurora-[0-9]+"])
    await expect(versions.nth(0).locator("ins")).to_have_text(["After: Block", "After: Borealis-[0-9]+"])
    await check_screen(page)

    await versions.nth(1).get_by_role("button", name=re.compile("Restore the version of")).press("Enter")
    await page.get_by_role("button", name="Restore", exact=True).press("Enter")
    await expect(versions).to_have_count(3)
    await expect(versions.nth(0)).to_contain_text("by A test's admin")
    assert f"versions={rule['id']}" in page.url
    stored = server.sql("SELECT action_tier, config_json ->> 'pattern' FROM dlp_rules WHERE id = %s", [rule["id"]])
    assert stored == [("log_only", "Aurora-[0-9]+")]
    assert server.sql(
        "SELECT count(*) FROM dlp_rule_versions WHERE rule_id = %s AND changed_by = %s", [rule["id"], str(who.id)]
    ) == [(1,)]
    assert call_model(server, key, "Borealis-7").status_code == 200


async def test_a_custom_pattern_is_tried_created_disabled_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    await sign_in("admin", "/console/dlp-rules")
    await page.get_by_role("link", name="Custom patterns").click()
    await expect(page.get_by_role("heading", name="No custom patterns yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="New pattern").press("Enter")
    dialog = modal(page)
    await expect(dialog.get_by_label("Name")).to_be_focused()
    await page.keyboard.type("Projects")
    await dialog.get_by_label("Action").select_option("block")
    await dialog.get_by_label("Entity type").fill("project")
    pattern = dialog.get_by_label("Pattern", exact=True)
    await pattern.fill("(?=a)")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("look-ahead is not possible")
    await expect(pattern).to_have_attribute("aria-invalid", "true")
    await pattern.fill("Aurora-[0-9]+")
    await dialog.get_by_label("Sample text").fill("Plans of Aurora-77")
    await dialog.get_by_role("button", name="Test pattern").press("Enter")
    await expect(dialog.locator("mark")).to_have_text("Aurora-77")
    await check_screen(page)
    await dialog.get_by_role("button", name="Create").press("Enter")
    await expect(row(page, "Projects")).to_contain_text("Block")
    assert call_model(server, key, "Plans of Aurora-77").status_code == 403

    await page.get_by_role("button", name="Actions for Projects").click()
    await page.get_by_role("menuitem", name="Edit").click()
    (stored,) = admin.get(PATTERNS).json()
    admin.put(f"{PATTERNS}/{stored['id']}", json={"category": "secret"}).raise_for_status()
    await dialog.get_by_label("Action").select_option("redact")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("changed")
    await dialog.get_by_role("button", name="Cancel").click()
    assert [(row["action_tier"], row["category"]) for row in admin.get(PATTERNS).json()] == [("block", "secret")]

    await page.get_by_role("button", name="Actions for Projects").click()
    await page.get_by_role("menuitem", name="Disable").click()
    await expect(row(page, "Projects")).to_contain_text("Disabled")
    assert call_model(server, key, "Plans of Aurora-77").status_code == 200
    await page.get_by_role("button", name="Actions for Projects").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(modal(page)).to_be_hidden()
    await expect(row(page, "Projects")).to_have_count(0)
    assert server.sql("SELECT count(*) FROM dlp_custom_patterns") == [(0,)]


async def test_a_built_in_pattern_is_suppressed_from_a_finding_and_put_in_force_again(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    await sign_in("admin", "/console/dlp-rules")
    test = page.get_by_role("region", name="Test a text against all rules")
    await test.get_by_label("Text").fill("Write to ada@example.com.")
    await test.get_by_role("button", name="Test text").click()
    await test.get_by_role("link", name=re.compile("Suppress the pattern .*e-?mail", re.IGNORECASE)).click()
    dialog = modal(page)
    await expect(dialog.get_by_label("Built-in pattern")).to_have_value("email")
    await dialog.get_by_label("Reason").fill("Support answers by e-mail.")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Suppress", exact=True).click()
    await expect(dialog).to_be_hidden()
    suppressed = page.get_by_role("table", name="Suppressed patterns")
    await expect(suppressed).to_contain_text("Support answers by e-mail.")
    await expect(suppressed).to_contain_text("A test's admin")
    await check_screen(page)
    assert server.sql("SELECT pattern_id, reason FROM dlp_suppressions") == [("email", "Support answers by e-mail.")]

    await page.get_by_role("button", name="Suppress a pattern").press("Enter")
    await expect(dialog.locator("option[value=phone]")).to_have_count(1)
    await expect(dialog.locator("option[value=email]")).to_have_count(0)
    await dialog.get_by_role("button", name="Suppress", exact=True).press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Choose a pattern.")
    await page.keyboard.press("Escape")

    await page.get_by_role("button", name=re.compile("End the suppression of")).press("Enter")
    await modal(page).get_by_role("button", name="End suppression").press("Enter")
    await expect(page.get_by_role("heading", name="All built-in patterns are active")).to_be_visible()
    assert server.sql("SELECT count(*) FROM dlp_suppressions") == [(0,)]


async def test_a_change_is_replayed_on_recorded_requests_before_it_comes_into_force(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    await sign_in("admin", "/console/dlp-rules/replay")
    recording = page.get_by_role("region", name="Recorded requests", exact=True)
    await expect(recording).to_contain_text("No requests are recorded.")
    await recording.get_by_role("button", name="Change…").press("Enter")
    dialog = modal(page)
    await dialog.get_by_label("Share of requests").fill("200")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a number from 0 to 100.")
    await dialog.get_by_label("Share of requests").fill("100")
    await dialog.get_by_label("Days until removal").fill("7")
    await page.keyboard.press("Enter")
    await expect(recording).to_contain_text("100% of the requests are recorded, and removed after 7 days.")
    await expect(recording).to_contain_text("Set by the organization.")
    shown = admin.get(SAMPLING).json()
    assert (shown["share"], shown["retention_days"]) == (1, 7)

    admin.post(RULES, json=RULE).raise_for_status()
    record_samples(server, admin, key, "Plans of Aurora-77", "Hello")
    await page.reload()
    await expect(recording).to_contain_text("2 requests are recorded.")
    trial = page.get_by_role("region", name="Try a change on recorded requests")
    await trial.get_by_role("button", name="Replay").press("Enter")
    await expect(trial.get_by_role("alert")).to_have_text("Choose a rule.")
    await trial.get_by_label("Rule", exact=True).select_option(label="Projects")
    await trial.get_by_label("Becomes").select_option("block")
    await trial.get_by_role("button", name="Replay").press("Enter")
    result = trial.get_by_role("status")
    await expect(result).to_contain_text("2 requests were examined:1 stricter0 weaker1 unchanged")
    blocked = result.get_by_role("table", name="Requests by action").get_by_role("row").filter(has_text="Block")
    await expect(blocked.get_by_role("cell")).to_have_text(["0", "0", "1"])
    differently = result.get_by_role("region", name="Requests that are treated differently")
    await expect(differently.get_by_role("listitem").first).to_contain_text("Log only→Block")
    await expect(differently).to_contain_text("xxxxxx-99")
    await check_screen(page)
    assert call_model(server, key, "Plans of Aurora-77").status_code == 200

    await trial.get_by_label("Change").select_option("suppress")
    await trial.get_by_label("Pattern").select_option("email")
    await expect(trial).to_contain_text("Active → Suppressed")
    await trial.get_by_role("button", name="Replay").click()
    await expect(result).to_contain_text("0 stricter0 weaker")


async def test_a_rule_has_a_dry_run_in_its_form(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, key: str
) -> None:
    admin.post(RULES, json=RULE).raise_for_status()
    record_samples(server, admin, key, "Plans of Aurora-77")
    await sign_in("admin", "/console/dlp-rules")
    await page.get_by_role("button", name="Actions for Projects").click()
    await page.get_by_role("menuitem", name="Edit").click()
    dialog = modal(page)
    run = dialog.get_by_role("button", name="Dry run on recorded requests")
    result = dialog.get_by_role("status").filter(has_text="1 request was examined")
    for action, differences in (("block", "1 stricter0 weaker"), ("log_only", "0 stricter0 weaker")):
        await dialog.get_by_label("Action").select_option(action)
        await run.click()
        await expect(result).to_contain_text(differences)
    await assert_accessible(page)
    (stored,) = admin.get(RULES).json()
    assert stored["action_tier"] == "log_only"


async def test_every_version_of_a_rule_is_reached_by_pages(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    rule = admin.post(RULES, json=RULE).json()["id"]
    server.sql(
        "INSERT INTO dlp_rule_versions (id, tenant_id, rule_id, change_type, old_values, new_values, changed_at)"
        " SELECT gen_random_uuid(), tenant_id, rule_id, 'update', new_values, new_values || jsonb_build_object("
        "'detector_name', 'Version ' || n), changed_at + n * interval '1 second'"
        " FROM dlp_rule_versions, generate_series(1, 60) n WHERE rule_id = %s",
        [rule],
    )
    await sign_in("admin", f"/console/dlp-rules?versions={rule}")
    versions = modal(page).get_by_role("list", name="Versions, newest first").get_by_role("listitem")
    await expect(versions).to_have_count(50)
    await expect(versions.first).to_contain_text("Current")
    await modal(page).get_by_role("button", name="Next").press("Enter")
    await expect(versions).to_have_count(11)
    assert "version_page=2" in page.url
    await page.reload()
    await expect(versions).to_have_count(11)
    await expect(modal(page).get_by_text("Current")).to_have_count(0)
    await assert_accessible(page)
    # The first version of all can be restored too. The question names the time in UTC.
    (at,) = server.sql("SELECT changed_at FROM dlp_rule_versions WHERE rule_id = %s AND change_type = 'create'", [rule])
    await versions.last.get_by_role("button", name=re.compile("Restore the version of")).press("Enter")
    question = modal(page).filter(has_text="Restore the version of").last
    await expect(question).to_contain_text(f"{at[0].astimezone(UTC):%Y-%m-%d %H:%M:%S}")
    await question.get_by_role("button", name="Restore", exact=True).press("Enter")
    await expect(modal(page).get_by_role("navigation")).to_contain_text("of 62")
    assert [stored["detector_name"] for stored in admin.get(RULES).json()] == [RULE["detector_name"]]


async def test_an_auditor_sees_the_pages_about_dlp_without_buttons_that_change(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    admin.post(RULES, json=RULE).raise_for_status()
    pattern = {"name": "Projects", "entity_type": "project", "pattern": "Aurora", "action_tier": "log_only"}
    admin.post(PATTERNS, json=pattern).raise_for_status()
    admin.post(SUPPRESSIONS, json={"pattern_id": "email"}).raise_for_status()
    await sign_in("auditor", "/console/dlp-rules")
    await page.get_by_role("button", name="Open the versions of Projects").click()
    await expect(modal(page)).to_contain_text("Created")
    await expect(modal(page).get_by_role("button")).to_have_count(1)
    await page.keyboard.press("Escape")
    main = page.get_by_role("main")
    for link, text in (
        ("Custom patterns", "Aurora"), ("Suppressions", "No reason was given"), ("Replay", "No requests are recorded."),
    ):  # fmt: skip
        await main.get_by_role("link", name=link).click()
        await expect(main).to_contain_text(text)
        await expect(main.locator("button:not([data-open], th button, nav button)")).to_have_count(0)
        await assert_accessible(page)
