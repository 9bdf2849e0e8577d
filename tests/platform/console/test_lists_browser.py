"""Lists of the console: pages, order and search by the server, with their state in the URL."""

import re
from collections.abc import Callable
from typing import NamedTuple
from uuid import uuid4

import pytest
from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, SignIn, check_screen, modal
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.platform.changes.change import DEFAULT_TENANT

#: Number of rows of each list, which fill two pages.
ROWS = 52
PAGE_ROWS = 50


class List(NamedTuple):
    """A list of the console, and the data of its rows. `values` maps columns to SQL expressions, except the id, the
    tenant and `name`."""

    path: str
    label: str
    header: str
    #: the field by which the header sorts
    field: str
    table: str
    name: str
    values: dict[str, str]


LISTS = [
    List("dlp-rules", "DLP rules", "Name", "detector_name", "dlp_rules", "detector_name", {
        "detector_type": "'regex'", "entity_type": "'internal_id'", "action_tier": "'log_only'", "enabled": "false",
        "config_json": """'{"pattern": "EMP-[0-9]{6}"}'""",
    }),
    List("dlp-rules/patterns", "Custom patterns", "Name", "name", "dlp_custom_patterns", "name", {
        "entity_type": "'internal_id'", "pattern": "'EMP-[0-9]{6}'", "category": "'pii'", "action_tier": "'log_only'",
        "enabled": "false",
    }),
    List("content-filters", "Content filters", "Name", "name", "content_filters", "name", {
        "filter_type": "'keyword_block'", "config": """'{"keywords": ["falcon"]}'""", "scope": "'org'", "priority": "7",
        "enabled": "false",
    }),
    List("policies", "Policies", "Name", "name", "policies", "name", {
        "condition": "'true'", "action": "'LOG'", "enabled": "false",
    }),
    List("routing", "Routing", "Name", "name", "cost_routing_policies", "name", {
        "enabled": "false", "strategy": "'balanced'", "group_ids": "'{}'", "model_filters": "'{}'",
        "fallback_chain": "'[]'",
    }),
    List("oauth-clients", "OAuth clients", "Name", "name", "oauth_clients", "name", {
        "client_id": "gen_random_uuid()", "enabled": "false", "secret_digest": "sha256('x')",
    }),
    List("models", "Models", "Name", "model_id", "model_configs", "model_id", {
        "provider": "'sandbox'", "is_active": "false",
    }),
    List("users", "Users", "Name", "name", "users", "display_name", {
        "email": "gen_random_uuid() || '@example.test'", "is_active": "false",
    }),
    List("keys?all=true", "API keys", "Name", "description", "api_keys", "description", {
        "user_id": "(SELECT id FROM users ORDER BY created_at LIMIT 1)", "key_prefix": "'gk_abcde'",
        "digest": "sha256(gen_random_uuid()::text::bytea)", "is_enabled": "false",
    }),
]  # fmt: skip


def add_rows(server: GatehouseServer, rows: List, mark: str) -> None:
    """Add rows whose names end with two digits, from 00."""
    columns = ", ".join(["id", "tenant_id", rows.name, *rows.values])
    values = ", ".join(["gen_random_uuid()", "%s", "%s || ' ' || lpad(n::text, 2, '0')", *rows.values.values()])
    server.sql(
        f"INSERT INTO {rows.table} ({columns}) SELECT {values} FROM generate_series(0, {ROWS - 1}) n",
        [DEFAULT_TENANT, mark],
    )


@pytest.mark.parametrize("rows", LISTS, ids=[entry.table for entry in LISTS])
async def test_a_list_is_searched_sorted_and_paged_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn, rows: List
) -> None:
    mark = f"Many {uuid4().hex[:8]}"
    add_rows(server, rows, mark)
    try:
        await sign_in("auditor", f"/console/{rows.path}")
        search = page.get_by_role("main").get_by_role("searchbox", name="Search", exact=True)
        await search.fill(mark)
        await page.keyboard.press("Enter")
        pager = page.get_by_role("navigation", name="Pages")
        await expect(pager).to_contain_text(f"of {ROWS}")
        shown = page.get_by_role("table").get_by_role("row").filter(has_text=mark)
        await expect(shown).to_have_count(PAGE_ROWS)
        header = page.get_by_role("columnheader", name=rows.header)
        await header.get_by_role("button").press("Enter")
        await expect(header).to_have_attribute("aria-sort", "ascending")
        await expect(shown.first).to_contain_text(f"{mark} 00")
        await header.get_by_role("button").press("Enter")
        await expect(header).to_have_attribute("aria-sort", "descending")
        await expect(shown.first).to_contain_text(f"{mark} {ROWS - 1}")
        await pager.get_by_role("button", name="Next").press("Enter")
        await expect(shown).to_have_count(ROWS - PAGE_ROWS)
        await page.reload()
        await expect(shown).to_have_count(ROWS - PAGE_ROWS)
        await expect(shown.last).to_contain_text(f"{mark} 00")
        await expect(search).to_have_value(mark)
        assert f"sort=-{rows.field}" in page.url
        assert "page=2" in page.url
        await check_screen(page)
        await search.fill(f"{mark} of nobody")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name=re.compile("matches the filters"))).to_be_visible()
        await page.get_by_role("main").get_by_role("button", name="Clear").last.press("Enter")
        assert "search=" not in page.url
    finally:
        server.sql(f"DELETE FROM {rows.table} WHERE {rows.name} LIKE %s", [f"{mark}%"])


async def test_keys_are_sorted_and_found_by_their_owners(
    server: GatehouseServer, page: Page, sign_in: SignIn, new_user: Callable[[str], OtherUser]
) -> None:
    mark = uuid4().hex[:8]
    for name in ("Ada", "Grace"):
        owner = new_user("user")
        server.sql("UPDATE users SET display_name = %s WHERE id = %s", [f"{name} {mark}", owner.id])
        server.sql(
            "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description)"
            " VALUES (%s, %s, %s, 'gk_abcde', sha256(%s), 'nightly')",
            [new_id(), DEFAULT_TENANT, owner.id, uuid4().bytes],
        )
    await sign_in("admin", "/console/keys?all=true")
    search = page.get_by_role("main").get_by_role("searchbox", name="Search", exact=True)
    await search.fill(mark)
    await page.keyboard.press("Enter")
    rows = page.get_by_role("table").get_by_role("row").filter(has_text=mark)
    await expect(rows).to_have_count(2)
    header = page.get_by_role("columnheader", name="Owner")
    for first, order in (("Ada", "ascending"), ("Grace", "descending")):
        await header.get_by_role("button").press("Enter")
        await expect(header).to_have_attribute("aria-sort", order)
        await expect(rows.first).to_contain_text(f"{first} {mark}")
    # The order by owner and the search in the list of all keys do not apply to the list of the user's own keys.
    await page.get_by_role("link", name="My keys").click()
    await expect(page.get_by_role("heading", name="No API keys yet")).to_be_visible()
    assert "search=" not in page.url


async def test_kill_switches_are_searched_filtered_and_paged_by_the_server(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    mark = uuid4().hex[:8]
    provider = f"many-{mark}"
    server.sql(
        "INSERT INTO providers (tenant_id, id, name, kind) VALUES (%s, %s, 'Many', 'sandbox')",
        [DEFAULT_TENANT, provider],
    )
    server.sql(
        "INSERT INTO model_configs (id, tenant_id, provider, model_id, is_active) SELECT gen_random_uuid(), %s, %s,"
        " %s || '-' || lpad(n::text, 2, '0'), false FROM generate_series(0, 51) n",
        [DEFAULT_TENANT, provider, mark],
    )
    try:
        await sign_in("admin", "/console/kill-switches")
        search = page.get_by_role("searchbox", name="Provider or model")
        await search.fill(provider)
        await page.keyboard.press("Enter")
        panel = page.get_by_role("region", name=provider, exact=True)
        models = panel.get_by_role("listitem")
        await expect(models).to_have_count(PAGE_ROWS)
        await expect(panel).to_contain_text("50 of 52 models are shown.")
        pager = page.get_by_role("navigation", name="Pages")
        await expect(pager).to_contain_text("of 52")
        await pager.get_by_role("button", name="Next").press("Enter")
        await expect(models).to_have_count(2)
        assert "page=2" in page.url
        await page.reload()
        await expect(models).to_have_count(2)
        await expect(search).to_have_value(provider)
        await models.last.get_by_role("button", name="Stop").press("Enter")
        await modal(page).get_by_role("button", name="Stop now").press("Enter")
        await expect(models.last).to_contain_text("Security event")
        # The page of models that a switch stops has only this one.
        await page.get_by_label("State").select_option("stopped")
        await expect(models).to_have_count(1)
        await expect(models).to_contain_text(f"{mark}-51")
        await expect(pager).to_have_count(0)
        assert "state=stopped" in page.url
        assert "page=" not in page.url
        await check_screen(page)
        await search.fill(f"{mark} of nobody")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="No provider or model matches")).to_be_visible()
        await page.get_by_role("main").get_by_role("button", name="Clear").last.press("Enter")
        await expect(search).to_have_value("")
        assert "state=" not in page.url
    finally:
        server.sql("DELETE FROM model_configs WHERE provider = %s", [provider])
        server.sql("DELETE FROM providers WHERE id = %s", [provider])
        server.touch("policy", DEFAULT_TENANT)


async def test_the_opened_audit_event_is_in_the_address(page: Page, sign_in: SignIn) -> None:
    await sign_in("auditor", "/console/audit?action=session.token_issued")
    await page.locator("[data-open]").first.press("Enter")
    await expect(modal(page)).to_contain_text("session.token_issued")
    await page.wait_for_url(re.compile("event=[0-9]+"))
    (sequence,) = re.findall("event=([0-9]+)", page.url)
    await page.reload()
    await expect(modal(page)).to_contain_text(f"{int(sequence):,}")
    # An event that the list does not contain is loaded too.
    await page.goto(f"/console/audit?action=login.succeeded&event={sequence}")
    await expect(modal(page)).to_contain_text("session.token_issued")
    await check_screen(page)
    await page.keyboard.press("Escape")
    await expect(modal(page)).to_be_hidden()
    assert "event=" not in page.url
    await page.goto("/console/audit?event=999999999")
    await expect(modal(page).get_by_role("alert")).to_contain_text("There is no such event")


async def test_members_of_a_large_group_are_paged_and_searched(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    group, mark = new_id(), uuid4().hex[:8]
    server.sql("INSERT INTO groups (id, tenant_id, name) VALUES (%s, %s, %s)", [group, DEFAULT_TENANT, f"Many {mark}"])
    server.sql(
        "WITH added AS (INSERT INTO users (id, tenant_id, email) SELECT gen_random_uuid(), %s, %s || '-' ||"
        " lpad(n::text, 2, '0') || '@example.test' FROM generate_series(0, 51) n RETURNING id)"
        " INSERT INTO group_members (id, tenant_id, group_id, user_id) SELECT gen_random_uuid(), %s, %s, id FROM added",
        [DEFAULT_TENANT, mark, DEFAULT_TENANT, group],
    )
    await sign_in("auditor", f"/console/groups?group={group}")
    dialog = modal(page)
    members = dialog.get_by_role("list", name="Members").get_by_role("listitem")
    await expect(members).to_have_count(PAGE_ROWS)
    await dialog.get_by_role("button", name="Next").press("Enter")
    await expect(members).to_have_count(2)
    await expect(members.last).to_contain_text(f"{mark}-51@")
    assert "members=2" in page.url
    await page.reload()
    await expect(members.last).to_contain_text(f"{mark}-51@")
    await dialog.get_by_role("searchbox", name="Search members").fill(f"{mark}-07")
    await page.keyboard.press("Enter")
    await expect(members).to_have_count(1)
    await expect(members.first).to_contain_text(f"{mark}-07@")
    assert "members=" not in page.url
    await page.reload()
    await expect(members).to_have_count(1)
    await dialog.get_by_role("button", name="Clear").press("Enter")
    await expect(members).to_have_count(PAGE_ROWS)
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert "group=" not in page.url
    server.sql("DELETE FROM groups WHERE id = %s", [group])


async def test_a_field_for_a_group_searches_the_server(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    mark = uuid4().hex[:8]
    server.sql(
        "INSERT INTO groups (id, tenant_id, name) SELECT gen_random_uuid(), %s, %s || ' ' || lpad(n::text, 3, '0')"
        " FROM generate_series(0, 59) n",
        [DEFAULT_TENANT, mark],
    )
    try:
        await sign_in("admin", "/console/content-filters")
        await page.get_by_role("button", name="New filter").click()
        dialog = modal(page)
        await dialog.get_by_role("searchbox", name="Search applies to").fill(f"{mark} 057")
        await dialog.get_by_label("Applies to", exact=True).select_option(f"{mark} 057")
        await dialog.get_by_role("searchbox", name="Search applies to").fill(f"{mark} 058")
        await expect(dialog.get_by_role("option", name=f"{mark} 058")).to_have_count(1)
        # The chosen group remains an option, although the search does not match it.
        await expect(dialog.get_by_label("Applies to", exact=True).locator("option:checked")).to_have_text(
            f"{mark} 057"
        )
        await check_screen(page)
    finally:
        server.sql("DELETE FROM groups WHERE name LIKE %s", [f"{mark}%"])
