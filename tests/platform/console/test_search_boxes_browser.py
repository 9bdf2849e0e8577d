"""The search boxes of fields with many options: they keep the focus and the text while results load."""

import asyncio
from typing import Literal
from uuid import uuid4

import pytest
from playwright.async_api import Page, Route, expect
from tests.platform.console.conftest import SignIn, modal
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

#: Statements that insert 60 rows by their tables. The names begin with a mark and end with a number.
INSERTS = {
    "mcp_servers": (
        "INSERT INTO mcp_servers (id, tenant_id, name, url, enabled, access, timeout_ms, server_info, faults)"
        " SELECT gen_random_uuid(), %s, %s || '-' || lpad(n::text, 3, '0'), 'https://8.8.8.8/mcp', true, 'open', 30000,"
        " '{}', '[]' FROM generate_series(0, 59) n"
    ),
    # They apply to nobody, because their group does not exist.
    "cost_routing_policies": (
        "INSERT INTO cost_routing_policies (id, tenant_id, name, enabled, strategy, group_ids, model_filters,"
        " fallback_chain) SELECT gen_random_uuid(), %s, %s || '-' || lpad(n::text, 3, '0'), true, 'cost_optimized',"
        " ARRAY[gen_random_uuid()], '{}', '[]' FROM generate_series(0, 59) n"
    ),
}


@pytest.mark.parametrize(
    ("path", "opener", "label", "role"),
    [
        ("content-filters", "New filter", "Search applies to", "option"),
        ("routing", "New policy", "Search applies to", "checkbox"),
    ],
    ids=["SearchedSelect", "ChoicesField"],
)
async def test_a_search_box_keeps_focus_and_text_while_results_load(
    server: GatehouseServer,
    page: Page,
    sign_in: SignIn,
    path: str,
    opener: str,
    label: str,
    role: Literal["option", "checkbox"],
) -> None:
    mark = uuid4().hex[:8]
    server.sql(
        "INSERT INTO groups (id, tenant_id, name) SELECT gen_random_uuid(), %s, %s || ' ' || lpad(n::text, 3, '0')"
        " FROM generate_series(0, 59) n",
        [DEFAULT_TENANT, mark],
    )
    answers = asyncio.Event()
    answers.set()

    async def answer_later(route: Route) -> None:
        await answers.wait()
        await route.continue_()

    try:
        await sign_in("admin", f"/console/{path}")
        await page.get_by_role("button", name=opener).first.click()
        dialog = modal(page)
        search = dialog.get_by_role("searchbox", name=label)
        await search.click()
        await page.route("**/api/admin/groups?*", answer_later)
        await search.press_sequentially(f"{mark} 057")
        await expect(dialog.get_by_role(role, name=f"{mark} 057")).to_have_count(1)
        await expect(dialog.get_by_role(role, name=mark)).to_have_count(1)

        # The options are those of the last search until the answer has arrived: one, which needs no search box.
        answers.clear()
        async with page.expect_request("**/api/admin/groups?*"):
            await search.press("Control+a")
            await search.press("Backspace")
            await expect(search).to_be_focused()
            await expect(search).to_have_value("")
            await search.press_sequentially(f"{mark} 0")
        await expect(search).to_be_focused()
        await expect(search).to_have_value(f"{mark} 0")
        answers.set()
        await expect(dialog.get_by_role(role, name=f"{mark} 001")).to_have_count(1)
        await search.press_sequentially("58")
        await expect(dialog.get_by_role(role, name=mark)).to_have_count(1)
        await expect(dialog.get_by_role(role, name=f"{mark} 058")).to_have_count(1)
        await expect(search).to_be_focused()
        await expect(search).to_have_value(f"{mark} 058")
    finally:
        answers.set()
        await page.unroute_all(behavior="wait")
        server.sql("DELETE FROM groups WHERE name LIKE %s", [f"{mark}%"])


@pytest.mark.parametrize(
    ("path", "table", "api", "label"),
    [
        ("mcp-servers/access", "mcp_servers", "**/api/v1/admin/mcp/servers/*", "Server"),
        ("routing", "cost_routing_policies", "**/api/admin/cost-routing/policies/*", "Policy"),
    ],
    ids=["servers", "policies"],
)
async def test_a_choice_that_is_not_loaded_yet_keeps_the_focus_and_the_search(
    server: GatehouseServer, page: Page, sign_in: SignIn, path: str, table: str, api: str, label: str
) -> None:
    mark = f"zz-{uuid4().hex[:8]}"
    server.sql(INSERTS[table], [DEFAULT_TENANT, mark])
    answers = asyncio.Event()

    async def answer_later(route: Route) -> None:
        await answers.wait()
        await route.continue_()

    try:
        await sign_in("admin", f"/console/{path}")
        search = page.get_by_role("searchbox", name=f"Search {label.lower()}")
        await search.fill(f"{mark}-057")
        select = page.get_by_role("combobox", name=label, exact=True)
        await expect(select.get_by_role("option", name=f"{mark}-057")).to_have_count(1)
        await expect(select.get_by_role("option", name=f"{mark}-001")).to_have_count(0)
        await page.route(api, answer_later)
        await select.focus()
        async with page.expect_request(api):
            await select.select_option(f"{mark}-057")
        await expect(select).to_be_focused()
        await expect(select.locator("option:checked")).to_have_text(f"{mark}-057")
        await expect(search).to_have_value(f"{mark}-057")
        # The option is missing from those of another search, and its name is not known yet.
        await search.fill("")
        await expect(select.get_by_role("option", name=f"{mark}-057")).to_have_count(0)
        await expect(select.locator("option:checked")).to_have_text("Loading")
        answers.set()
        await expect(select.locator("option:checked")).to_have_text(f"{mark}-057")
        await expect(search).to_be_focused()
    finally:
        answers.set()
        server.sql(f"DELETE FROM {table} WHERE name LIKE %s", [f"{mark}-%"])
