"""The console's screens of requests and of spend, in a real browser, against a real server."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

CARD = "My card is 4242 4242 4242 4242."
POLICIES = "/api/admin/policies"
#: The status with which the first attempt fails, by the role of the test. Each test has its own model, because a
#: circuit opens after a few failures.
STATUSES = {"admin": 500, "auditor": 502, "user": 503}


def new_key(server: GatehouseServer, who: OtherUser, name: str) -> dict[str, Any]:
    answer = api(server, who).post("/api/auth/api-keys", json={"description": name})
    key: dict[str, Any] = answer.json()
    return key


def call_with_fallback(server: GatehouseServer, key: str, model: str) -> None:
    """Call a model that fails, with a card number and tags; a fallback answers."""
    body = {
        "model": model, "fallbacks": ["sandbox/echo"], "messages": [{"role": "user", "content": CARD}],
    }  # fmt: skip
    headers = {"Authorization": f"Bearer {key}", "X-Gateway-Tags": "team=search"}
    answer = httpx2.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    recorded_call(server, key, "A second request")


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("complementary", name="Request").get_by_role("region", name=name, exact=True)


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.parametrize("role", ["admin", "auditor", "user"])
async def test_the_details_of_a_request_show_attempts_findings_and_decisions(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], role: str
) -> None:
    who = await sign_in(role)
    admin = api(server, new_user("admin"))
    rule = admin.post(POLICIES, json={"name": f"Logged for {role}", "condition": "true", "action": "LOG"}).json()
    model = f"status-{STATUSES[role]}"
    added = admin.post("/api/admin/models/catalog/", json={"provider": "sandbox", "model_id": model})
    assert added.status_code in {201, 409}, added.text
    try:
        key = new_key(server, who, f"details of {role}")
        call_with_fallback(server, key["api_key"], f"sandbox/{model}")
    finally:
        admin.delete(f"{POLICIES}/{rule['id']}")
    await page.goto(f"/console/requests?key={key['id']}")
    rows = page.get_by_role("button", name=re.compile("Request to"))
    await expect(rows).to_have_count(2)
    await rows.nth(1).focus()
    await page.keyboard.press("Enter")
    attempts = section(page, "Attempts").get_by_role("listitem")
    failed = attempts.filter(has_text=model)
    await expect(failed.first).to_contain_text(f"HTTP {STATUSES[role]}")
    await expect(failed.first).to_contain_text(re.compile(r"\d ms"))
    await expect(attempts.last).to_contain_text("echo")
    await expect(attempts.last).to_contain_text("Answered")
    await expect(section(page, "Caller")).to_contain_text(f"details of {role}")
    await expect(section(page, "Caller")).to_contain_text("team=search")
    if role == "user":
        await expect(section(page, "DLP events")).to_have_count(0)
        await expect(section(page, "Policy decision")).to_have_count(0)
    else:
        finding = section(page, "DLP events").get_by_role("listitem")
        await expect(finding).to_contain_text("Redacted")
        await expect(finding).to_contain_text("Request · 1 match")
        decision = section(page, "Policy decision").get_by_role("listitem").filter(has_text=f"Logged for {role}")
        await expect(decision.first).to_contain_text("Matched")
        await expect(decision.first).to_contain_text("Policy · LOG")
        await expect(section(page, "Audit")).to_contain_text("gateway.request")
    assert "4242 4242 4242 4242" not in await page.content()
    await check_screen(page)
    # The other request has only one attempt and no findings.
    await page.keyboard.press("k")
    await expect(attempts).to_have_count(1)
    if role != "user":
        await expect(section(page, "DLP events")).to_contain_text("No DLP rule found anything in this request.")
        await section(page, "Audit").get_by_role("link", name="Open in the audit log").click()
        await expect(page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()
        await expect(page.get_by_role("row")).to_have_count(2)


async def test_users_keys_and_models_are_searched_while_typing(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    colleague = new_user("user")
    key = new_key(server, colleague, "typed and found")
    recorded_call(server, key["api_key"])
    await sign_in("auditor", "/console/requests")
    table = page.get_by_role("table", name="Requests")
    user_filter = page.get_by_role("combobox", name="User")
    await user_filter.fill(colleague.email[:12])
    option = page.get_by_role("option").filter(has_text=colleague.email)
    await expect(option).to_be_visible()
    await assert_accessible(page)
    await user_filter.press("Enter")
    await expect(user_filter).to_have_value("A test's user")
    await expect(page.get_by_role("listbox")).to_have_count(0)
    assert query(page) == {"user": [str(colleague.id)], "period": ["day"]}
    await expect(table.get_by_role("row")).to_have_count(2)

    key_filter = page.get_by_role("combobox", name="API key")
    await key_filter.click()
    await page.get_by_role("option").filter(has_text="typed and found").click()
    await expect(key_filter).to_have_value("typed and found")
    assert query(page)["key"] == [key["id"]]

    model_filter = page.get_by_role("combobox", name="Model")
    await model_filter.fill("nothing of this name")
    await page.get_by_role("option", name="nothing of this name").click()
    await expect(page.get_by_role("heading", name="No request matches the filters")).to_be_visible()
    await page.reload()
    for field, value in ((user_filter, "A test's user"), (key_filter, "typed and found")):
        await expect(field).to_have_value(value)
    await expect(model_filter).to_have_value("nothing of this name")
    await check_screen(page)
    # An empty field does not filter.
    await model_filter.fill("")
    await expect(table.get_by_role("row")).to_have_count(2)
    assert "model" not in query(page)
    await page.get_by_role("button", name="Clear").click()
    await expect(user_filter).to_have_value("")
    assert query(page) == {"period": ["day"]}


async def test_a_time_range_is_chosen_and_stays_in_the_url(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    recorded_call(server, new_key(server, who, "in time")["api_key"])
    await page.goto("/console/requests")
    rows = page.get_by_role("button", name=re.compile("Request to echo"))
    await expect(rows).to_have_count(1)
    await page.get_by_label("Period").select_option("custom")
    start, end = page.get_by_label("From", exact=True), page.get_by_label("To", exact=True)
    await expect(start).not_to_have_value("")
    now = datetime.now(UTC)
    await end.fill(f"{now - timedelta(hours=2):%Y-%m-%dT%H:%M}")
    await expect(page.get_by_role("heading", name="No request matches the filters")).to_be_visible()
    await end.fill(f"{now + timedelta(minutes=2):%Y-%m-%dT%H:%M}")
    await expect(rows).to_have_count(1)
    await check_screen(page)
    await page.reload()
    await expect(end).to_have_value(f"{now + timedelta(minutes=2):%Y-%m-%dT%H:%M}")
    await expect(rows).to_have_count(1)
    assert set(query(page)) == {"period", "from", "to"}
    await page.get_by_label("Period").select_option("week")
    await expect(start).to_have_count(0)
    assert query(page) == {"period": ["week"]}


@pytest.mark.parametrize("role", ["admin", "auditor"])
async def test_spend_leads_from_a_group_to_its_users_keys_and_requests(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser], role: str
) -> None:
    colleague, admin = new_user("user"), api(server, new_user("admin"))
    group = admin.post("/api/admin/groups", json={"name": f"Spenders {role}"}).json()
    admin.post(f"/api/admin/groups/{group['id']}/members", json={"user_id": str(colleague.id)}).raise_for_status()
    server.settled()
    key = new_key(server, colleague, f"spends {role}")
    for _ in range(3):
        recorded_call(server, key["api_key"])
    await sign_in(role)
    await page.get_by_role("link", name="Spend", exact=True).click()
    await expect(page.get_by_role("heading", name="Spend", level=1)).to_be_visible()
    await page.get_by_role("navigation", name="Group by").get_by_role("link", name="Groups").press("Enter")
    row = page.get_by_role("row").filter(has_text=f"Spenders {role}")
    await expect(row.get_by_role("cell").nth(1)).to_have_text("3")
    header = page.get_by_role("columnheader", name="Requests")
    await header.get_by_role("button").press("Enter")
    await expect(header).to_have_attribute("aria-sort", "descending")
    await check_screen(page)
    await page.get_by_role("link", name=f"Users of Spenders {role}").press("Enter")
    await expect(page.get_by_text(f"Group: Spenders {role}")).to_be_visible()
    await expect(page.get_by_role("row")).to_have_count(2)
    await page.get_by_role("link", name="API keys of A test's user").click()
    await expect(page.get_by_text("User: A test's user")).to_be_visible()
    key_row = page.get_by_role("row").filter(has_text=f"spends {role}")
    await expect(key_row).to_contain_text("A test's user")
    await page.reload()
    await expect(key_row).to_be_visible()
    await page.get_by_role("button", name="Remove the filter User").click()
    await expect(page.get_by_text("User: A test's user")).to_have_count(0)
    await page.get_by_role("link", name=f"Requests of spends {role}").click()
    await expect(page.get_by_role("button", name=re.compile("Request to echo"))).to_have_count(3)
    await expect(page.get_by_role("combobox", name="API key")).to_have_value(f"spends {role}")


async def test_spend_is_shown_for_chosen_days(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    who = await sign_in("admin")
    recorded_call(server, new_key(server, who, "today")["api_key"])
    await page.goto(f"/console/spend?by=api_key&user={who.id}")
    await expect(page.get_by_role("row").filter(has_text="today")).to_be_visible()
    await page.get_by_label("Period").select_option("custom")
    first, last = page.get_by_label("First day (UTC)"), page.get_by_label("Last day (UTC)")
    await expect(last).to_have_value(f"{datetime.now(UTC):%Y-%m-%d}")
    await first.fill("2020-01-01")
    await last.fill("2020-01-31")
    await expect(page.get_by_role("heading", name="No requests in these days")).to_be_visible()
    assert query(page) == {
        "by": ["api_key"],
        "user": [str(who.id)],
        "period": ["custom"],
        "from": ["2020-01-01"],
        "to": ["2020-01-31"],
    }
    await check_screen(page)


async def test_spend_leads_from_an_alias_to_its_deployments_and_their_requests(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    alias = f"alias-{uuid4().hex[:8]}"
    deployments = [{"provider": "sandbox", "model_id": "echo"}]
    body = {"name": alias, "deployments": deployments}
    api(server, new_user("admin")).post("/api/v1/admin/model-aliases", json=body).raise_for_status()
    for _ in range(2):
        recorded_call(server, server.key, model=alias)
    await sign_in("auditor", "/console/spend")
    await page.get_by_role("navigation", name="Group by").get_by_role("link", name="Model aliases").click()
    row = page.get_by_role("row").filter(has_text=alias)
    await expect(row.get_by_role("cell").nth(1)).to_have_text("2")
    await check_screen(page)
    await page.get_by_role("link", name=f"Deployments of {alias}").click()
    await expect(page.get_by_role("row").filter(has_text="sandbox/echo").get_by_role("cell").nth(1)).to_have_text("2")
    await page.get_by_label("Period").select_option("week")
    assert query(page) == {"by": ["model_alias"], "period": ["week"], "alias": [alias]}
    await page.reload()
    await page.get_by_role("link", name="Requests of sandbox/echo").click()
    await expect(page).to_have_url(re.compile("/requests.*model=echo"))
    await page.go_back()
    await page.get_by_role("button", name="Remove the filter Model alias").click()
    await expect(row).to_be_visible()


async def test_spend_of_aliases_is_paged_and_sorted_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    mark = uuid4().hex[:8]
    # The alias with the fewest requests costs most.
    server.sql(
        "INSERT INTO alias_hours (tenant_id, hour, model_alias, shadow, requests, errors, blocked, dlp_triggers,"
        " cost_usd) SELECT %s, date_trunc('hour', now()), %s || '-' || lpad(n::text, 2, '0'), false, 1000 + n, n, 0, 0,"
        " CASE n WHEN 0 THEN 1000000 ELSE 0.000001 END FROM generate_series(0, 51) n",
        [DEFAULT_TENANT, mark],
    )
    try:
        await sign_in("auditor", "/console/spend?by=model_alias")
        rows = page.get_by_role("table", name="Model aliases").get_by_role("row")
        await expect(rows.nth(1)).to_contain_text(f"{mark}-00")
        # The share is that of the cost of all aliases.
        await expect(rows.nth(1).get_by_role("cell").last).to_have_text("100%")
        await expect(page.get_by_role("status").filter(has_text="In all: $1,000,000")).to_be_visible()
        pager = page.get_by_role("navigation", name="Pages")
        await pager.get_by_role("button", name="Next").click()
        await expect(page).to_have_url(re.compile("page=2"))
        await page.get_by_role("columnheader", name="Requests").get_by_role("button").press("Enter")
        assert query(page) == {"by": ["model_alias"], "period": ["month"], "sort": ["-requests"]}
        await expect(rows.nth(1)).to_contain_text(f"{mark}-51")
        await page.reload()
        await expect(rows.nth(1)).to_contain_text(f"{mark}-51")
        await page.get_by_role("columnheader", name="Errors").get_by_role("button").press("Enter")
        await expect(rows.nth(1).get_by_role("cell").nth(2)).to_have_text("51")
        await check_screen(page)
        # The list of users has no such order.
        await page.get_by_role("navigation", name="Group by").get_by_role("link", name="Users").click()
        await expect(page.get_by_role("columnheader", name="Cost")).to_have_attribute("aria-sort", "descending")
    finally:
        server.sql("DELETE FROM alias_hours WHERE model_alias LIKE %s", [f"{mark}-%"])


async def test_a_user_has_no_filter_by_user(page: Page, sign_in: SignIn) -> None:
    who = await sign_in("user")
    await page.goto(f"/console/requests?period=all&user={who.id}")
    await expect(page.get_by_role("heading", name="No requests in this period")).to_be_visible()
    await expect(page.get_by_role("button", name="Clear")).to_have_count(0)


async def test_users_have_no_page_of_spend(page: Page, sign_in: SignIn) -> None:
    await sign_in("user")
    await expect(page.get_by_role("link", name="My usage")).to_be_visible()
    await expect(page.get_by_role("link", name="Spend", exact=True)).to_have_count(0)
