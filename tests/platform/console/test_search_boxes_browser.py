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
