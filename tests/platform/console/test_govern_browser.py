"""Kill switches, approvals, compliance, the audit log and users in Chromium: the main task of each, by clicking."""

import asyncio
import csv
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from psycopg.types.json import Jsonb
from tests.platform.console.conftest import (
    OtherUser,
    SignIn,
    api,
    call_model,
    check_paging,
    check_screen,
    enter_password,
    modal,
    recorded_call,
)
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.members import code_of
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

NEW_PASSWORD = "a password that nobody else has"
BUNDLES = "/api/admin/compliance-bundles"
FLAG = "/api/v1/admin/org/feature-flags/human_in_loop"
RULE = {
    "detector_name": "Project names", "detector_type": "regex", "entity_type": "project", "action_tier": "prompt",
    "config_json": {"pattern": "Aurora-[0-9]+"},
}  # fmt: skip


# kill switches ------------------------------------------------------------------------------------------------------


async def test_a_model_is_stopped_with_a_reason_and_released(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    caller = api(server, new_user("user"))
    key = caller.post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    await sign_in("admin", "/console/kill-switches?search=sandbox")
    await page.get_by_role("button", name=re.compile("Stop Echo")).click()
    dialog = modal(page)
    await dialog.get_by_label("Reason").select_option("cost_runaway")
    await dialog.get_by_role("button", name="Stop now").click()
    await expect(dialog).to_be_hidden()
    model = page.get_by_role("listitem").filter(has_text="Runaway cost")
    await expect(model).to_contain_text("Stopped")
    assert call_model(server, key).status_code == 503
    changes = page.get_by_role("region", name="Latest changes")
    await expect(changes).to_contain_text("sandbox/echo")
    await expect(changes).to_contain_text("1 of 1 workers")
    await check_screen(page)

    await page.get_by_role("button", name=re.compile("Release Echo")).focus()
    await page.keyboard.press("Enter")
    await modal(page).get_by_role("button", name="Release now").press("Enter")
    await expect(page.get_by_role("button", name=re.compile("Stop Echo"))).to_be_visible()
    assert call_model(server, key).status_code == 200


async def test_a_provider_is_stopped_as_a_whole(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    await sign_in("admin", "/console/kill-switches?search=sandbox")
    await page.get_by_role("button", name="Stop provider sandbox").click()
    await modal(page).get_by_role("button", name="Stop now").click()
    provider = page.get_by_role("region", name="sandbox", exact=True)
    await expect(provider.get_by_role("button")).to_have_count(1)
    await expect(provider).to_contain_text("Security event")
    await provider.get_by_role("button", name="Release sandbox").click()
    await modal(page).get_by_role("button", name="Release now").click()
    await expect(page.get_by_role("button", name="Stop provider sandbox")).to_be_visible()


async def test_the_release_of_a_model_asks_for_a_second_factor(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("admin")
    client = api(server, who)
    secret = client.post("/api/auth/mfa/totp", json={}).json()["secret"]
    assert client.post("/api/auth/mfa/totp/confirm", json={"code": code_of(secret, -1)}).status_code == 200
    policy = Jsonb({"enforcement_level": "optional"})
    server.sql("UPDATE tenants SET mfa_policy = %s WHERE id = %s", [policy, DEFAULT_TENANT])
    server.touch("tenant", DEFAULT_TENANT)
    server.settled()
    try:
        await page.goto("/console/kill-switches?search=sandbox")
        await enter_password(page, who.email)
        await page.get_by_label("Code from your authenticator app").fill(code_of(secret))
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name=re.compile("Stop Echo")).click()
        await modal(page).get_by_role("button", name="Stop now").click()
        release = page.get_by_role("button", name=re.compile("Release Echo"))
        await expect(release).to_be_visible()
        server.sql("UPDATE sessions SET mfa_at = now() - interval '1 day' WHERE user_id = %s", [who.id])
        await page.reload()
        await release.click()
        await page.get_by_role("button", name="Release now").click()
        step_up = page.get_by_role("dialog", name="Confirm that it is you")
        await step_up.get_by_label("Code").fill(code_of(secret, 1))
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name=re.compile("Stop Echo"))).to_be_visible()
    finally:
        server.sql("UPDATE tenants SET mfa_policy = '{}' WHERE id = %s", [DEFAULT_TENANT])
        server.touch("tenant", DEFAULT_TENANT)
        server.settled()


# approvals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "status"), [("Approve", 200), ("Deny", 403)])
async def test_a_waiting_request_appears_and_is_decided(
    server: GatehouseServer,
    page: Page,
    sign_in: SignIn,
    new_user: Callable[[str], OtherUser],
    decision: str,
    status: int,
) -> None:
    admin = api(server, new_user("admin"))
    assert admin.patch(FLAG, json={"enabled": True}).status_code == 200
    rule = admin.post("/api/admin/dlp-rules/", json=RULE)
    assert rule.status_code == 201, rule.text
    who = new_user("user")
    key = api(server, who).post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    try:
        await sign_in("admin", "/console/approvals")
        await expect(page.get_by_role("heading", name="Nothing waits for a decision")).to_be_visible()
        waiting = asyncio.create_task(
            asyncio.to_thread(call_model, server, key, "Plans of Aurora-77", timeout_seconds=120)
        )
        await page.get_by_role("link", name="Overview").click()
        await page.get_by_role("link", name="One request waits for a decision.").click(timeout=60_000)
        # The sandbox's answer repeats the request, so that an approved request waits a second time.
        for direction in ("Request", "Answer") if decision == "Approve" else ("Request",):
            card = page.get_by_role("listitem").filter(has_text=re.compile(f"Project names.*Found in{direction}"))
            await expect(card).to_contain_text("A test's user", timeout=60_000)
            await expect(card).to_contain_text("project")
            if direction == "Request":
                await check_screen(page)
            await card.get_by_role("button", name=decision).click()
            dialog = modal(page)
            await dialog.get_by_label("Reason").fill("Seen with finance.")
            await dialog.get_by_role("button", name=decision).click()
            await expect(card).to_be_hidden()
        answer: httpx2.Response = await waiting
        assert answer.status_code == status, answer.text
        await page.get_by_role("link", name="Approved" if decision == "Approve" else "Denied").click()
        card = page.get_by_role("listitem").filter(has_text="Seen with finance.").first
        await card.get_by_role("link", name=answer.headers["x-request-id"]).click()
        # The record of a denied request names the model as the caller did, because no model was chosen.
        await expect(page.get_by_role("button", name=re.compile("Request to .*echo"))).to_have_count(1)
    finally:
        admin.delete(f"/api/admin/dlp-rules/{rule.json()['id']}")
        admin.patch(FLAG, json={"enabled": False})


# the audit log ------------------------------------------------------------------------------------------------------


async def test_events_are_listed_newest_first_filtered_and_opened(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("user")
    client = api(server, who)
    key = client.post("/api/auth/api-keys", json={"description": "for the log"}).json()["api_key"]
    request_id = recorded_call(server, key)
    await sign_in("auditor", "/console/audit")
    table = page.get_by_role("table", name="Audit log")
    await expect(table.get_by_role("row").nth(1)).to_be_visible()
    await check_screen(page)
    await page.get_by_label("Action").select_option("gateway.request")
    await page.get_by_label("Request id").fill(request_id)
    await page.keyboard.press("Enter")
    await expect(table.get_by_role("row")).to_have_count(2)
    assert "action=gateway.request" in page.url
    await table.get_by_role("button").focus()
    await page.keyboard.press("Enter")
    dialog = modal(page)
    await expect(dialog).to_contain_text("sandbox/echo")
    details = dialog.get_by_role("group", name="Details")
    await expect(details).to_contain_text("API keyfor the log")
    await expect(details).to_contain_text("StreamNo")
    await expect(details).not_to_contain_text("{")
    await check_screen(page)
    await dialog.get_by_role("link", name=request_id).click()
    await expect(page.get_by_role("table", name="Requests").get_by_role("row")).to_have_count(2)


@pytest.mark.parametrize("is_person", [True, False])
async def test_events_are_filtered_by_an_actor_and_a_period(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], is_person: bool
) -> None:
    who, admin = new_user("user"), api(server, new_user("admin"))
    api(server, who)
    name = f"reports {uuid4().hex[:8]}"
    client = admin.post("/api/admin/oauth-clients/", json={"name": name, "scopes": ["chat:write"]}).json()
    credentials = (client["client_id"], client["client_secret"])
    form = {"grant_type": "client_credentials"}
    token = httpx2.post(f"{server.url}/oauth/token", data=form, auth=credentials).json()["access_token"]
    recorded_call(server, token)
    typed, actor, shown = (who.email, who.id, "A test's user") if is_person else (name, client["client_id"], name)
    await sign_in("auditor", "/console/audit")
    events = page.get_by_role("table", name="Audit log").get_by_role("row")
    field = page.get_by_role("combobox", name="Actor")
    await field.fill(typed)
    await page.get_by_role("option").filter(has_text=typed).click()
    await expect(field).to_have_value(shown)
    assert f"actor_id={actor}" in page.url
    await expect(events.nth(1)).to_contain_text(shown)
    await page.get_by_role("button", name="Export…").click()
    await expect(modal(page)).to_contain_text(shown)
    await page.keyboard.press("Escape")
    await page.get_by_label("To", exact=True).fill("2020-01-31T00:00")
    await expect(page.get_by_role("heading", name="No event matches the filters")).to_be_visible()
    await check_screen(page)
    await page.reload()
    await expect(field).to_have_value(shown)
    await page.get_by_label("To", exact=True).fill("")
    await expect(events.nth(1)).to_contain_text(shown)
    await page.get_by_role("button", name="Clear").click()
    await expect(field).to_have_value("")


async def test_older_events_are_loaded_on_request(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin = api(server, new_user("admin"))
    for number in range(101):
        assert admin.patch(FLAG, json={"enabled": number % 2 == 0}).status_code == 200
    admin.patch(FLAG, json={"enabled": False})
    await sign_in("admin", "/console/audit")
    rows = page.get_by_role("table", name="Audit log").get_by_role("row")
    await expect(rows).to_have_count(101)
    await page.get_by_role("button", name="Show older events").click()
    await expect(rows.nth(101)).to_be_visible()


async def test_new_events_appear_while_the_page_follows(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("user")
    client = api(server, who)
    client.post("/api/auth/api-keys", json={"description": "first"}).raise_for_status()
    await sign_in("auditor", f"/console/audit?action=api_key.created&actor_id={who.id}")
    rows = page.get_by_role("table", name="Audit log").get_by_role("row")
    await expect(rows).to_have_count(2)
    follow = page.get_by_role("switch", name="Follow")
    await expect(follow).not_to_be_checked()
    await follow.press("Space")
    await expect(follow).to_be_checked()
    assert "follow=true" in page.url
    ids = [client.post("/api/auth/api-keys", json={"description": "x"}).json()["id"] for _ in range(2)]
    await expect(rows).to_have_count(4, timeout=60_000)
    client.post("/api/auth/api-keys", json={"description": "last"}).raise_for_status()
    await expect(rows).to_have_count(5, timeout=60_000)
    await check_screen(page)
    # The events are listed newest first.
    await rows.nth(2).click()
    await expect(modal(page)).to_contain_text(ids[1])
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Clear").click()
    await expect(follow).to_be_checked()
    await follow.uncheck()
    assert "follow" not in page.url


async def test_the_chain_is_verified_and_a_break_is_reported(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    client = api(server, new_user("user"))
    for number in range(3):
        client.post("/api/auth/api-keys", json={"description": f"key {number}"}).raise_for_status()
    await sign_in("auditor", "/console/audit")
    await page.get_by_role("button", name="Verify chain…").press("Enter")
    dialog = modal(page)
    await dialog.get_by_role("button", name="Verify", exact=True).press("Enter")
    result = dialog.get_by_role("status")
    await expect(result).to_contain_text("The chain is whole")
    head = "SELECT sequence, encode(hash, 'hex') FROM audit_heads WHERE tenant_id = %s"
    [(newest, newest_hash)] = server.sql(head, [DEFAULT_TENANT])
    await expect(dialog.get_by_label("Hash of the newest event")).to_have_text(f"{newest} {newest_hash}")
    await check_screen(page)

    change = "UPDATE audit_events SET reason = %s WHERE tenant_id = %s AND sequence = 2"
    [(reason,)] = server.sql("SELECT reason FROM audit_events WHERE tenant_id = %s AND sequence = 2", [DEFAULT_TENANT])
    server.sql(change, ["forged", DEFAULT_TENANT])
    try:
        await dialog.get_by_role("button", name="Verify", exact=True).press("Enter")
        await expect(result).to_contain_text("The chain is broken")
        places = result.get_by_role("region", name="Where the chain is broken")
        await expect(places.get_by_role("listitem")).to_have_text("Event 2 changed: its hash does not match")
        await assert_accessible(page)
    finally:
        server.sql(change, [reason, DEFAULT_TENANT])


async def test_filtered_events_of_a_period_are_exported(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("user")
    client = api(server, who)
    ids = [client.post("/api/auth/api-keys", json={"description": "x"}).json()["id"] for _ in range(2)]
    await sign_in("auditor", f"/console/audit?action=api_key.created&actor_id={who.id}")
    await page.get_by_role("button", name="Export…").press("Enter")
    dialog = modal(page)
    await expect(dialog).to_contain_text("api_key.created · A test's user")
    await check_screen(page)
    for file_format, suffix in (("csv", ".csv"), ("jsonl", ".jsonl")):
        await dialog.get_by_label("Format").select_option(file_format)
        async with page.expect_download() as started:
            await dialog.get_by_role("button", name="Export", exact=True).press("Enter")
        download = await started.value
        assert download.suggested_filename.endswith(suffix)
        lines = (await download.path()).read_text().splitlines()
        events = list(csv.DictReader(lines)) if file_format == "csv" else [json.loads(line) for line in lines]
        assert [event["resource_id"] for event in events] == ids
        assert {event["actor_id"] for event in events} == {str(who.id)}
        await expect(dialog.get_by_role("status")).to_have_text("2 events were exported.")
    await dialog.get_by_label("To and including").fill("2020-01-31")
    await dialog.get_by_label("From").fill("2020-02-01")
    await dialog.get_by_role("button", name="Export", exact=True).click()
    await expect(dialog.get_by_role("alert")).to_have_text("The first day is after the last.")
    await dialog.get_by_label("From").fill("2020-01-31")
    await dialog.get_by_role("button", name="Export", exact=True).click()
    await expect(dialog.get_by_role("status")).to_have_text("No event matches.")


# users --------------------------------------------------------------------------------------------------------------


async def test_a_person_is_invited_and_chooses_a_password(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    email = f"grace-{uuid4().hex[:8]}@example.test"
    await sign_in("admin", "/console/users")
    await page.get_by_role("button", name="New user").click()
    dialog = modal(page)
    await dialog.get_by_role("button", name="Create user").click()
    await expect(dialog.get_by_role("alert")).to_have_text("Enter an e-mail address.")
    await dialog.get_by_label("E-mail address").fill("nobody")
    await dialog.get_by_role("button", name="Create user").click()
    await expect(dialog.get_by_label("E-mail address")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("E-mail address").fill(email)
    await dialog.get_by_label("Name", exact=True).fill("Grace Hopper")
    await dialog.get_by_label("Role").select_option("auditor")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create user").click()
    link = await dialog.get_by_label("Invitation link").inner_text()
    await page.keyboard.press("Escape")
    await dialog.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name=re.compile("Grace Hopper"))
    await expect(row).to_contain_text(email)
    await expect(row).to_contain_text("Auditor")
    assert link not in await page.content()

    await page.context.clear_cookies()
    await page.goto(link)
    await expect(page.get_by_label("E-mail")).to_have_value(email)
    await page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
    await page.get_by_label("The same again").fill(NEW_PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/console$"))
    await expect(page.get_by_role("button", name="Account")).to_contain_text("Grace Hopper")
    login = {"email": email, "password": NEW_PASSWORD}
    assert httpx2.post(f"{server.url}/api/auth/login", json=login).status_code == 200


async def test_a_user_is_searched_edited_deactivated_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who = new_user("user")
    name = f"Person {uuid4().hex[:8]}"
    await sign_in("admin", "/console/users")
    await page.get_by_label("Search").fill(who.email)
    await page.keyboard.press("Enter")
    rows = page.get_by_role("table", name="Users").get_by_role("row")
    await expect(rows).to_have_count(2)
    await check_screen(page)

    async def choose(item: str) -> None:
        await rows.nth(1).get_by_role("button", name=re.compile("Actions")).click()
        await page.get_by_role("menuitem", name=item).click()

    await choose("Edit")
    await modal(page).get_by_label("Name", exact=True).fill(name)
    await modal(page).get_by_role("button", name="Save").click()
    await expect(rows.nth(1)).to_contain_text(name)
    await choose("Deactivate")
    await expect(rows.nth(1)).to_contain_text("Deactivated")
    await choose("Activate")
    await expect(rows.nth(1)).to_contain_text("Active")
    await choose("New password link")
    link = await page.get_by_label("Password link").inner_text()
    assert re.fullmatch(rf"{server.url}/login/reset\?token=pwr_\S+", link)
    await page.get_by_role("button", name="Done").click()
    await choose("Delete")
    await page.get_by_label("Anonymize the audit log").check()
    await modal(page).get_by_role("button", name="Delete user").click()
    await expect(page.get_by_role("heading", name="No user matches the filters")).to_be_visible()
    assert server.sql("SELECT count(*) FROM users WHERE id = %s", [who.id]) == [(0,)]
    query = "SELECT count(*) FROM jobs WHERE kind = 'access.anonymise' AND args->>'user_id' = %s"
    assert server.sql(query, [str(who.id)]) == [(3,)]


# compliance ---------------------------------------------------------------------------------------------------------


async def test_a_bundle_is_created_acknowledged_archived_and_deleted(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    key = api(server, new_user("user")).post("/api/auth/api-keys", json={"description": "x"}).json()["api_key"]
    name = f"Card data {uuid4().hex[:8]}"
    who = await sign_in("admin", "/console/compliance")
    await page.get_by_role("button", name="New bundle").press("Enter")
    dialog = modal(page)
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label("Framework").select_option("PCI-DSS")
    await dialog.get_by_role("button", name="Create").press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Enter a version.")
    await dialog.get_by_label("Version").fill("4.0.1")
    for entity_type in ("credit_card", "person"):
        await dialog.get_by_label("Search entity types").fill(entity_type)
        await dialog.get_by_label(entity_type, exact=True).press("Space")
    await expect(dialog.get_by_text("2 are chosen.")).to_be_visible()
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").press("Enter")
    await expect(dialog).to_be_hidden()
    row = page.get_by_role("row").filter(has_text=name)
    await expect(row).to_contain_text("Not acknowledged")
    query = "SELECT seed_rule_mappings, state, enabled FROM compliance_bundles WHERE name = %s"
    assert server.sql(query, [name]) == [(["credit_card", "person"], "active", True)]

    def figure(of: str) -> Locator:
        return page.get_by_role("region", name=of, exact=True)

    recorded_call(server, key, "My card is 4111 1111 1111 1111")
    await page.reload()
    await expect(figure("Findings").get_by_text("1", exact=True)).to_be_visible()
    await expect(page.get_by_role("region", name="Rules with the most findings")).to_contain_text(name)
    await check_screen(page)
    await page.get_by_role("button", name=f"Details of “{name}”").press("Enter")
    await expect(dialog).to_contain_text("1 findings.")
    await expect(dialog).to_contain_text("Found only with a DLP rule of the detector “Entities”: person.")
    await dialog.get_by_role("button", name="Acknowledge").press("Enter")
    await expect(dialog).to_contain_text("A test's admin")
    await check_screen(page)
    await page.keyboard.press("Escape")
    await expect(row).to_contain_text("Acknowledged")
    acknowledged = "SELECT acknowledged_by FROM compliance_bundles WHERE name = %s"
    assert [str(by) for (by,) in server.sql(acknowledged, [name])] == [str(who.id)]

    async def choose(item: str) -> None:
        await page.get_by_role("button", name=f"Actions for {name}").click()
        await page.get_by_role("menuitem", name=item).click()

    await choose("Edit")
    await expect(dialog).to_contain_text("must be acknowledged again")
    await dialog.get_by_label("person", exact=True).uncheck()
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("Not acknowledged")
    await choose("Archive")
    await dialog.get_by_role("button", name="Archive").click()
    await expect(row).to_contain_text("Archived")
    await expect(figure("Active bundles").get_by_text("0", exact=True)).to_be_visible()
    await choose("Activate")
    await expect(row).to_contain_text("Not acknowledged")
    await choose("Disable")
    await expect(row).to_contain_text("Disabled")
    assert server.sql(query, [name]) == [(["credit_card"], "active", False)]
    await choose("Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", name="No bundles yet")).to_be_visible()


async def test_bundles_are_exported_and_imported_and_the_report_is_downloaded(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], tmp_path: Path
) -> None:
    admin, name = api(server, new_user("admin")), f"Exported {uuid4().hex[:8]}"
    body = {"name": name, "regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["iban"]}
    bundle = admin.post(BUNDLES, json=body).json()
    await sign_in("admin", "/console/compliance?days=7")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export", exact=True).click()
    exported = tmp_path / "bundles.json"
    await (await download.value).save_as(exported)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download report").click()
    assert (await download.value).suggested_filename == "compliance-report-7-days.html"
    assert name in Path(await (await download.value).path()).read_text()

    admin.delete(f"{BUNDLES}/{bundle['id']}").raise_for_status()
    dialog = modal(page)
    await page.get_by_role("button", name="Import").press("Enter")
    submit = dialog.get_by_role("button", name="Import")
    await submit.press("Enter")
    await expect(dialog.get_by_role("alert")).to_have_text("Choose a file.")
    (tmp_path / "text.json").write_text("no JSON")
    await dialog.get_by_label("File").set_input_files(tmp_path / "text.json")
    await submit.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("The file is not JSON")
    await expect(dialog.get_by_label("File")).to_have_value("")
    await dialog.get_by_label("File").set_input_files(tmp_path / "text.json")
    # Chromium reads the time of the last change after the file was chosen, at the latest when it is read.
    assert await dialog.get_by_label("File").evaluate("input => input.files[0].text()") == "no JSON"
    (tmp_path / "text.json").write_text("changed after it was chosen")
    # Chromium compares the time of the last change in whole seconds.
    os.utime(tmp_path / "text.json", (0, 0))
    await submit.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("Choose it again")
    (tmp_path / "faulty.json").write_text('[{"name": "x"}]')
    await dialog.get_by_label("File").set_input_files(tmp_path / "faulty.json")
    await submit.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("regulatory_framework")
    await dialog.get_by_label("File").set_input_files(exported)
    await submit.press("Enter")
    await expect(dialog).to_contain_text("Created")
    await expect(dialog).to_contain_text(name)
    await check_screen(page)
    await page.get_by_role("button", name="Done").press("Enter")
    await expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("GDPR 1")


async def test_bundles_are_paged_sorted_and_filtered_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    admin, mark = api(server, new_user("admin")), f"Many {uuid4().hex[:8]}"
    body = {"regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["iban"], "enabled": False}
    for number in range(51):
        admin.post(BUNDLES, json={**body, "name": f"{mark} {number:02}"}).raise_for_status()
    body = {**body, "name": f"{mark} 51", "regulatory_framework": "SOX", "enabled": True}
    bundle = admin.post(BUNDLES, json=body).json()["id"]
    admin.post(f"{BUNDLES}/{bundle}/archive").raise_for_status()
    try:
        await sign_in("auditor", f"/console/compliance?search={mark.replace(' ', '+')}&bundle={bundle}")
        await expect(modal(page)).to_contain_text("SOX 1")
        await page.keyboard.press("Escape")
        await check_paging(page, "Bundles", mark, total=52, by_name=True)
        rows = page.get_by_role("row").filter(has_text=mark)
        for label, value in (("Status", "Enabled"), ("Framework", "SOX"), ("State", "Archived")):
            await page.get_by_label(label).select_option(value)
            await expect(rows).to_have_count(1)
            await expect(rows).to_contain_text(f"{mark} 51")
            await page.get_by_role("button", name="Clear").click()
            await expect(rows).to_have_count(50)
    finally:
        server.sql("DELETE FROM compliance_bundles WHERE name LIKE %s", [f"{mark}%"])


# roles --------------------------------------------------------------------------------------------------------------


async def test_auditors_can_only_read_and_users_have_no_links_to_these_pages(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    navigation = page.get_by_role("navigation", name="Main")
    await sign_in("auditor", "/console/kill-switches?search=sandbox")
    await expect(page.get_by_role("region", name="sandbox", exact=True)).to_be_visible()
    await expect(page.locator("main button:not(th button, nav button)")).to_have_text(["Clear"])
    await navigation.get_by_role("link", name="Users").click()
    await expect(page.get_by_role("table", name="Users").get_by_role("row").nth(1)).to_be_visible()
    await expect(page.get_by_role("button", name="New user")).to_have_count(0)
    await expect(page.get_by_role("button", name=re.compile("Actions for"))).to_have_count(0)
    body = {"name": "Of the auditor", "regulatory_framework": "GDPR", "version": "1", "seed_rule_mappings": ["iban"]}
    api(server, new_user("admin")).post(BUNDLES, json=body).raise_for_status()
    await navigation.get_by_role("link", name="Compliance").click()
    await page.get_by_role("button", name="Details of “Of the auditor”").click()
    await expect(modal(page)).to_contain_text("Not yet")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Download report")).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("New|Import|Acknowledge|Actions for"))).to_have_count(0)

    await page.context.clear_cookies()
    await sign_in("user")
    for name in ("Users", "Audit log", "Approvals", "Kill switches", "Compliance"):
        await expect(navigation.get_by_role("link", name=name)).to_have_count(0)
    await page.goto("/console/users")
    await expect(page.get_by_role("alert")).to_be_visible()
