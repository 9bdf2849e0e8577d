"""System, SIEM, retention and outposts in Chromium: the main task of each, by clicking."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import TIERS, OtherUser, SignIn, api, check_screen, enter_password, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.receiver import HERE, Receiver, certificate
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

MAINTENANCE = "/api/admin/system/maintenance"
SIEM = "/api/v1/admin/siem"
RETENTION = "/api/v1/admin/retention/policy"
HOLD = "/api/v1/admin/retention/legal-hold"
FLAGS = "/api/v1/admin/org/feature-flags"


@pytest.fixture(scope="module")
def server(console: Path) -> Iterator[GatehouseServer]:
    """A server that may reach receivers on this machine."""
    env = {"RATE_LIMIT_TIERS": TIERS, "EGRESS_ALLOWLIST": ",".join(HERE), "SSL_CERT_FILE": str(certificate())}
    with GatehouseServer(env=env) as running:
        yield running


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver.listening() as listening:
        yield listening


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> httpx2.Client:
    return api(server, new_user("admin"))


@pytest.fixture
def sign_in_operator(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> Callable[[str], Awaitable[OtherUser]]:
    """Sign an operator of the platform in, up to the console's `path`."""

    async def signed_in(path: str) -> OtherUser:
        who = new_user("admin")
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
    server: GatehouseServer, page: Page, sign_in_operator: Callable[[str], Awaitable[OtherUser]]
) -> None:
    operator = api(server, await sign_in_operator("/console/system"))
    maintenance, dialog = panel(page, "Maintenance"), modal(page)
    await expect(maintenance).to_contain_text("Requests are answered.")
    await check_screen(page)
    await maintenance.get_by_role("button", name="Start maintenance").press("Enter")
    await dialog.get_by_label("Wait for calls").fill("9000")
    await dialog.get_by_role("button", name="Start maintenance").click()
    await expect(dialog.get_by_label("Wait for calls")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    await dialog.get_by_label("Wait for calls").fill("0")
    await dialog.get_by_label("Message").fill("Back at noon.")
    await page.keyboard.press("Enter")
    try:
        await expect(maintenance).to_contain_text("New requests of all organizations are refused")
        await expect(maintenance).to_contain_text("Message: Back at noon.")
        refused = httpx2.get(f"{server.url}/v1/models", headers={"Authorization": f"Bearer {server.key}"})
        assert (refused.status_code, refused.json()["message"]) == (503, "Back at noon.")
        # The console works during maintenance, also after a reload.
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
    server: GatehouseServer, page: Page, sign_in_operator: Callable[[str], Awaitable[OtherUser]]
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
    await expect(check).to_contain_text("To do: read the workers' logs; restart workers that hang")
    await expect(page.get_by_role("list", name="Components")).to_contain_text("Database")
    await check_screen(page)
    server.sql("DELETE FROM nodes WHERE name = %s", [silent])
    await panel(page, "Checks").get_by_role("button", name="Check again").click()
    await expect(check).to_contain_text("all workers sent heartbeats")
    await expect(row).to_have_count(0)
    await expect(panel(page, "Versions")).to_contain_text("Database schema")


# SIEM ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_receiver(server: GatehouseServer, admin: httpx2.Client) -> Iterator[None]:
    """Remove the receiver at the end of the test."""
    yield
    admin.patch(f"{FLAGS}/audit_log_streaming", json={"enabled": False}).raise_for_status()
    for table in ("siem_queue", "siem_cursors", "siem_targets"):
        server.sql(f"DELETE FROM {table}")


@pytest.mark.usefixtures("no_receiver")
async def test_a_receiver_is_set_up_tested_paused_and_resumed(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, receiver: Receiver
) -> None:
    await sign_in("admin", "/console/siem")
    dialog = modal(page)
    await expect(page.get_by_role("heading", name="No receiver yet")).to_be_visible()
    await check_screen(page)
    await page.get_by_role("button", name="Set up a receiver").press("Enter")
    await expect(dialog.get_by_role("option", name="File on the server")).to_have_count(0)
    await dialog.get_by_label("Type").select_option("Splunk HTTP Event Collector")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("URL").fill("https://10.1.2.3/")
    await dialog.get_by_label("Token").fill("5f1c2a9e-1111-4222-8333")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
    await assert_accessible(page)
    # A webhook without a secret gets one, which is shown once.
    await dialog.get_by_label("Type").select_option("Webhook")
    await dialog.get_by_label("URL").fill(receiver.url)
    await dialog.get_by_role("button", name="Save").click()
    secret = await dialog.locator("code").inner_text()
    assert len(secret) == 64
    await dialog.get_by_role("button", name="Done").click()
    await expect(dialog).to_be_hidden()
    assert secret not in await page.content()
    forwarding, target = panel(page, "Forwarding"), panel(page, "Receiver")
    await expect(forwarding).to_contain_text("Feature is off")
    await expect(target).to_contain_text(receiver.url)

    receiver.answers.append(503)
    await target.get_by_role("button", name="Send a test event").click()
    await expect(target.get_by_role("status")).to_contain_text("The receiver did not accept it")
    await target.get_by_role("button", name="Send a test event").click()
    await expect(target.get_by_role("status")).to_contain_text("The receiver accepted it in")
    assert receiver.got[-1].json["payload"]["events"][0]["event"]["dataset"] == "gatehouse.test"

    receiver.otherwise = 503
    admin.patch(f"{FLAGS}/audit_log_streaming", json={"enabled": True}).raise_for_status()
    await expect(forwarding).to_contain_text("Failing")
    await expect(forwarding).to_contain_text("503")
    await check_screen(page)
    receiver.otherwise = 200
    # After the receiver is saved again, an attempt is made at once. The stored secret is kept.
    await page.get_by_role("button", name="Edit").click()
    await dialog.get_by_label("URL").fill(f"{receiver.url}events")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    await expect(forwarding).to_contain_text("Active")
    await expect(forwarding).not_to_contain_text("Last error")

    await target.get_by_role("button", name="Pause").press("Enter")
    await dialog.get_by_role("button", name="Pause forwarding").press("Enter")
    await expect(forwarding).to_contain_text("Nothing is sent.")
    assert admin.get(SIEM).json()["enabled"] is False
    await target.get_by_role("button", name="Resume").click()
    await dialog.get_by_role("button", name="Resume forwarding").click()
    await expect(forwarding).to_contain_text("Active")
    stored = admin.get(SIEM).json()
    assert (stored["type"], stored["url"], stored["enabled"]) == ("webhook", f"{receiver.url}events", True)
    assert stored["secret_configured"] is True


# retention ----------------------------------------------------------------------------------------------------------


async def test_retention_is_shortened_and_held(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    await sign_in("admin", "/console/retention")
    policy, hold, dialog = (
        panel(page, "Audit events, usage records and DLP events"),
        panel(page, "Legal hold"),
        modal(page),
    )
    await expect(policy).to_contain_text("90 days")
    await expect(policy.get_by_text("Default.", exact=True)).to_have_count(4)
    await check_screen(page)
    await policy.get_by_role("button", name="Edit").press("Enter")
    await dialog.get_by_label("Archiver runs").fill("daily")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_label("Archiver runs")).to_have_attribute("aria-invalid", "true")
    # Another administrator saves the policy while the dialog is open.
    admin.put(RETENTION, json={"warm_retention_days": 400}).raise_for_status()
    await dialog.get_by_label("Archiver runs").fill("30 3 * * *")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Somebody else has changed it")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(policy).to_contain_text("400 days")
    await policy.get_by_role("button", name="Edit").click()
    await dialog.get_by_label("Archiver runs").fill("30 3 * * *")
    await dialog.get_by_label("In the database (days)").fill("30")
    day = datetime.now(UTC) - timedelta(days=30)
    await expect(dialog.get_by_role("status")).to_contain_text(f"Lists end at {day:%b} {day.day}, {day.year}")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Shorten the retention").click()
    await expect(dialog).to_be_hidden()
    await expect(policy.get_by_text("Set by the organization")).to_have_count(3)
    await expect(policy).to_contain_text("30 days")
    query = "SELECT retention_policy FROM tenants WHERE id = %s"
    assert server.sql(query, [DEFAULT_TENANT]) == [
        ({"hot_retention_days": 30, "warm_retention_days": 400, "archiver_schedule": "30 3 * * *"},)
    ]

    await hold.get_by_role("button", name="Set a hold").press("Enter")
    await dialog.get_by_role("button", name="Set the hold").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a reason.")
    await dialog.get_by_label("Reason").fill("Case 24-1815")
    await dialog.get_by_role("button", name="Set the hold").press("Enter")
    await expect(hold).to_contain_text("Case 24-1815")
    await expect(policy).to_contain_text("The legal hold keeps everything.")
    assert admin.get(HOLD).json()["active"] is True
    await check_screen(page)
    await hold.get_by_role("button", name="Release").press("Enter")
    await dialog.get_by_role("button", name="Release the hold").press("Enter")
    await expect(hold).to_contain_text("Records are removed when their time is over.")
    assert server.sql("SELECT count(*) FROM legal_holds") == [(0,)]
    server.sql("UPDATE tenants SET retention_policy = '{}' WHERE id = %s", [DEFAULT_TENANT])


# outposts -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def known_outposts(server: GatehouseServer) -> Iterator[list[str]]:
    """An outpost that waits for its next policy, one that was revoked, and one that has never connected."""
    ids, org = [str(uuid4()) for _ in range(3)], str(uuid4())
    named = [
        {"outpost_id": ids[0], "org_id": org, "serials": ["a1"]},
        {"outpost_id": ids[2], "org_id": org, "serials": ["c3"]},
    ]
    server.sql(
        "INSERT INTO outpost_trust (key, ca_certificates, organizations, outposts) VALUES ('portal', '[]', %s, %s)",
        [json.dumps({org: str(DEFAULT_TENANT)}), json.dumps(named)],
    )
    for outpost, seen in ((ids[0], "now() + interval '1 hour'"), (ids[1], "now() - interval '3 days'")):
        server.sql(
            "INSERT INTO outpost_nodes (tenant_id, outpost_id, version, seen_at, certificate_serial, certificate_ends)"
            f" VALUES (%s, %s, 1, {seen}, 'a1', now() + interval '3 days')",
            [DEFAULT_TENANT, outpost],
        )
    server.sql(
        "INSERT INTO outpost_positions (tenant_id, outpost_id, journal_id, sequence) VALUES (%s, %s, %s, 1234)",
        [DEFAULT_TENANT, ids[0], uuid4()],
    )
    yield ids
    for table in ("outpost_trust", "outpost_nodes", "outpost_positions", "system_config"):
        server.sql(f"DELETE FROM {table}")
    server.sql("UPDATE tenants SET feature_flags = feature_flags - 'outpost_enabled' WHERE id = %s", [DEFAULT_TENANT])


async def test_outposts_are_listed_and_get_credentials(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client, known_outposts: list[str]
) -> None:
    await sign_in("admin", "/console/outposts")
    dialog, settings = modal(page), panel(page, "Settings of all outposts")
    connected, revoked, unseen = (page.get_by_role("row").filter(has_text=outpost[:8]) for outpost in known_outposts)
    await expect(connected).to_contain_text("Connected")
    await expect(connected).to_contain_text("1,234")
    await expect(revoked).to_contain_text("Revoked")
    await expect(revoked).to_contain_text("Last contact 3 days ago")
    await expect(unseen).to_contain_text("Never seen")
    await expect(page.get_by_role("main").get_by_role("status").first).to_contain_text("their records are refused")
    await check_screen(page)
    admin.patch(f"{FLAGS}/outpost_enabled", json={"enabled": True}).raise_for_status()
    await expect(page.get_by_text("their records are refused")).to_have_count(0)

    # Each value is shown with its source.
    feature, credentials = (
        settings.locator("dl > div").filter(has_text=name) for name in ("Outposts", "Credentials of")
    )
    await expect(feature).to_contain_text("Set by the organization.")
    await expect(settings).to_contain_text("Not sent")
    await expect(credentials.get_by_text("Default.", exact=True)).to_be_visible()
    await settings.get_by_role("button", name="Send credentials").press("Enter")
    await dialog.get_by_role("button", name="Send credentials").press("Enter")
    await expect(settings).to_contain_text("sealed to each outpost's certificate")
    await expect(credentials.get_by_text("Set by the organization")).to_be_visible()
    query = "SELECT value FROM system_config WHERE key = 'outpost_provider_credentials'"
    assert server.sql(query) == [("sealed",)]
    await settings.get_by_role("button", name="Stop sending").click()
    await dialog.get_by_role("button", name="Stop sending").click()
    await expect(settings).to_contain_text("Not sent")
    assert server.sql(query) == [("off",)]


# roles --------------------------------------------------------------------------------------------------------------


async def test_auditors_can_only_read_and_users_have_no_links_to_these_pages(page: Page, sign_in: SignIn) -> None:
    navigation, main = page.get_by_role("navigation", name="Main"), page.get_by_role("main")
    await sign_in("auditor")
    await navigation.get_by_role("link", name="System").click()
    await expect(panel(page, "Maintenance")).to_contain_text("Only operators of the platform can change this.")
    await expect(page.get_by_role("list", name="Checks")).to_contain_text("Master key")
    await expect(page.get_by_role("button", name="maintenance")).to_have_count(0)
    await expect(panel(page, "Workers")).to_contain_text("processes were seen in the last two minutes")
    await check_screen(page)
    await navigation.get_by_role("link", name="SIEM").click()
    await expect(page.get_by_role("heading", name="No receiver yet")).to_be_visible()
    await expect(main.get_by_role("button")).to_have_count(0)
    await navigation.get_by_role("link", name="Outposts").click()
    await expect(page.get_by_role("heading", name="No outposts yet")).to_be_visible()
    await expect(main.get_by_role("button")).to_have_count(0)
    await navigation.get_by_role("link", name="Retention").click()
    await expect(panel(page, "Legal hold")).to_contain_text("Off")
    await expect(main.get_by_role("button")).to_have_count(0)

    await page.context.clear_cookies()
    await sign_in("user")
    for entry in ("System", "SIEM", "Retention", "Outposts"):
        await expect(navigation.get_by_role("link", name=entry)).to_have_count(0)
    await page.goto("/console/system")
    await expect(page.get_by_role("alert").first).to_be_visible()
