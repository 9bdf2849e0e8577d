"""Lists that the server sorts: requests, outposts, approvals, access requests and API keys."""

import re
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from playwright.async_api import Page, Route, expect
from psycopg.types.json import Jsonb
from tests.platform.console.conftest import OtherUser, SignIn, api, check_screen, recorded_call
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


async def test_requests_are_sorted_by_tokens_until_too_many_match(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    key = api(server, who).post("/api/auth/api-keys", json={"description": "sorted"}).json()["api_key"]
    for words in (5, 200, 50):
        recorded_call(server, key, "word " * words)
    await page.goto("/console/requests")
    header = page.get_by_role("columnheader", name="Tokens")
    rows = page.get_by_role("table", name="Requests").get_by_role("row")
    await expect(rows).to_have_count(4)
    await expect(page.get_by_role("columnheader", name="Time")).to_have_attribute("aria-sort", "descending")
    for order in ("descending", "ascending"):
        await header.get_by_role("button").click()
        await expect(header).to_have_attribute("aria-sort", order)
        await expect(page.get_by_role("table", name="Requests")).to_have_attribute("aria-busy", "false")
        texts = [int(text.split("→")[0]) for text in await page.locator("td:nth-child(5)").all_inner_texts()]
        assert texts == sorted(texts, reverse=order == "descending")
        assert len(set(texts)) == 3
    assert query(page)["sort"] == ["tokens"]
    await check_screen(page)

    async def refuse(route: Route) -> None:
        if "sort=-cost_usd" in route.request.url:
            await route.fulfill(status=400, json={"detail": "sort: too many"})
        else:
            await route.continue_()

    await page.route("**/api/v1/usage/records?*", refuse)
    await page.get_by_role("columnheader", name="Cost").get_by_role("button").click()
    await expect(page.get_by_role("heading", name="Too many requests for this order")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Sort by time").click()
    await expect(rows).to_have_count(4)
    assert "sort" not in query(page)


@pytest.fixture
def outposts(server: GatehouseServer) -> Iterator[list[str]]:
    """Three outposts by the time of their last contact."""
    ids = [str(uuid4()) for _ in range(3)]
    for hours, version, outpost in zip((3, 2, 1), (5, 9, 7), ids, strict=True):
        server.sql(
            "INSERT INTO outpost_nodes (tenant_id, outpost_id, version, seen_at, certificate_serial, certificate_ends)"
            " VALUES (%s, %s, %s, now() - make_interval(hours => %s), 'a', now() + interval '30 days')",
            [DEFAULT_TENANT, outpost, version, hours],
        )
    yield ids
    server.sql("DELETE FROM outpost_nodes")


async def test_outposts_are_sorted_by_their_columns(page: Page, sign_in: SignIn, outposts: list[str]) -> None:
    first, second, third = outposts
    await sign_in("auditor", "/console/outposts")
    codes = page.get_by_role("table", name="Outposts").locator("code")

    async def expect_order(*ids: str) -> None:
        await expect(codes).to_have_text([f"{outpost[:8]}…" for outpost in ids])

    await expect_order(third, second, first)
    await page.get_by_role("columnheader", name="Outpost").get_by_role("button").click()
    await expect_order(first, second, third)
    await page.get_by_role("columnheader", name="Policy").get_by_role("button").click()
    await expect_order(first, third, second)
    assert query(page)["sort"] == ["policy_version"]
    await page.reload()
    await expect_order(first, third, second)


async def test_held_requests_are_sorted_by_time_and_by_their_end(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    who, rules = new_user("user"), re.compile("^(First|Second|Third|Early|Late)$")
    # The keeper ends requests that no running node holds.
    ((node,), *_) = server.sql("SELECT id FROM nodes")
    for name, status, minutes in (
        ("First", "pending", 50),
        ("Second", "pending", 40),
        ("Third", "pending", 45),
        ("Early", "denied", 5),
        ("Late", "denied", 5),
    ):
        server.sql(
            "INSERT INTO approvals (id, tenant_id, request_id, user_id, reason, rule_name, entity_types, node,"
            " direction, status, created_at, expires_at) VALUES (%s, %s, 'r', %s, 'x', %s, %s, %s, 'input', %s,"
            " clock_timestamp(), now() + make_interval(mins => %s))",
            [new_id(), DEFAULT_TENANT, who.id, name, Jsonb(["card"]), node, status, minutes],
        )
    try:
        await sign_in("auditor", "/console/approvals")
        titles = page.get_by_role("main").get_by_role("listitem").get_by_role("heading", name=rules)
        await expect(titles).to_have_text(["Third", "Second", "First"])
        order = page.get_by_label("Order")
        await order.select_option("Oldest first")
        await expect(titles).to_have_text(["First", "Second", "Third"])
        await order.select_option("Ending first")
        await expect(titles).to_have_text(["Second", "Third", "First"])
        waiting = page.get_by_role("navigation", name="Status").get_by_role("link", name="Waiting")
        await expect(waiting).to_have_attribute("aria-current", "page")
        await check_screen(page)
        await page.get_by_role("link", name="Denied").click()
        await expect(titles).to_have_text(["Late", "Early"])
        assert "sort" not in query(page)
        await order.select_option("Oldest first")
        await expect(titles).to_have_text(["Early", "Late"])
        await waiting.click()
        await expect(titles).to_have_text(["First", "Second", "Third"])
    finally:
        server.sql("DELETE FROM approvals WHERE user_id = %s", [who.id])


async def test_access_requests_are_sorted_by_time_and_by_amount(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    server.sql("DELETE FROM access_requests")
    who = await sign_in("auditor", "/console/access-requests")
    for person in (who, new_user("user")):
        for period, amount in (("minute", 20), ("day", 300), ("month", 4)):
            body = {"kind": "limit", "period": period, "limit_usd": amount, "reason": "x"}
            assert api(server, person).post("/api/access-requests", json=body).status_code == 201
    titles = page.get_by_role("main").get_by_role("listitem").get_by_role("heading")
    order = page.get_by_label("Order")
    minute, day, month = re.compile(r"\$20.* a minute"), re.compile(r"\$300.* a day"), re.compile(r"\$4.* a month")
    await page.reload()
    await expect(titles).to_have_text([month, day, minute])
    await order.select_option("Highest amount first")
    await expect(titles).to_have_text([day, minute, month])
    assert query(page)["sort"] == ["-limit_usd"]
    await check_screen(page)
    # The order stays if a status is chosen.
    await page.get_by_label("Status").select_option("Waiting")
    await expect(titles).to_have_text([day, minute, month])
    await order.select_option("Oldest first")
    await expect(titles).to_have_text([minute, day, month])

    await page.goto("/console/approvals?view=access")
    await expect(titles).to_have_text([month, day, minute] * 2)
    await order.select_option("Lowest amount first")
    await expect(titles).to_have_text([month, month, minute, minute, day, day])
    await check_screen(page)
    # Decided requests are sorted by time only.
    await page.get_by_role("navigation", name="Status").get_by_role("link", name="Denied").click()
    await expect(order.get_by_role("option")).to_have_text(["Newest first", "Oldest first"])
    await expect(order).to_have_value("-created_at")
    assert "sort" not in query(page)
    server.sql("DELETE FROM access_requests")


async def test_keys_are_sorted_by_spend(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    who = await sign_in("admin")
    client = api(server, who)
    for name, cost in (("cheap", "0.5"), ("dear", "7.25"), ("unused", None)):
        key_id = client.post("/api/auth/api-keys", json={"description": name}).json()["id"]
        # Also spent tomorrow, because the month can end during the test.
        for days in (0, 1) if cost is not None else ():
            server.sql(
                "INSERT INTO spend_deltas"
                " VALUES (%s, (now() AT TIME ZONE 'UTC')::date + %s, NULL, %s, %s, 1, 0, 0, 0, %s, 0)",
                [DEFAULT_TENANT, days, who.id, key_id, cost],
            )
    await page.goto("/console/keys")
    header = page.get_by_role("columnheader", name="Spent this month")
    names = page.get_by_role("table", name="API keys").locator("tbody td:nth-child(1)")
    await expect(names).to_have_text(["unused", "dear", "cheap"])
    await header.get_by_role("button").click()
    await expect(header).to_have_attribute("aria-sort", "descending")
    await expect(names).to_have_text(["dear", "cheap", "unused"])
    await header.get_by_role("button").press("Enter")
    await expect(names).to_have_text(["unused", "cheap", "dear"])
    assert query(page)["sort"] == ["month_cost_usd"]
    await page.reload()
    await expect(names).to_have_text(["unused", "cheap", "dear"])
