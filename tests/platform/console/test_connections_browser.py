"""Users' accounts at MCP servers in Chromium: an administrator registers the server, a user connects an account at a
real authorization server, calls a tool with the official SDK, and disconnects. Stdio servers in the form."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from playwright.async_api import Locator, Page, expect
from tests.platform.console.conftest import TIERS, SignIn, api, check_screen, modal, session_cookie
from tests.support.accessibility import assert_accessible
from tests.support.chromium import needs_chromium
from tests.support.keyboard import press
from tests.support.mcp_accounts import CLIENT_ID, CLIENT_SECRET, AccountServer, account_server
from tests.support.mcp_servers import BASE
from tests.support.ports import free_port
from tests.support.server import GatehouseServer

pytestmark = [needs_chromium, pytest.mark.timeout(300)]

TOKEN = "of-the-variable-0001"


@pytest.fixture(scope="module")
def server(console: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatehouseServer]:
    """A server that knows its address, which redirect URIs contain, and that offers a command."""
    commands = tmp_path_factory.mktemp("commands") / "mcp.json"
    tracker = {"command": [sys.executable, "-c", ""], "organizations": ["*"], "environment": ["TRACKER_TOKEN"]}
    commands.write_text(json.dumps({"commands": {"issue-tracker": tracker}}))
    url = f"http://127.0.0.1:{free_port()}"
    env = {"RATE_LIMIT_TIERS": TIERS, "PUBLIC_URL": url, "MCP_STDIO_COMMANDS": str(commands)}
    running = GatehouseServer(env=env)
    # The server starts on the port of this address.
    running.url = url
    with running:
        yield running


@pytest.fixture
async def upstream() -> AsyncIterator[AccountServer]:
    async with account_server() as started:
        yield started


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("main").get_by_role("row").filter(has_text=text)


def named(admin: httpx2.Client, name: str) -> dict[str, Any]:
    servers: list[dict[str, Any]] = admin.get(BASE).raise_for_status().json()["mcp_servers"]
    return next(one for one in servers if one["name"] == name)


async def consent(page: Page, upstream: AccountServer, account: str) -> None:
    """Continue from the page of the gateway, and consent at the authorization server."""
    upstream.account = account
    await page.get_by_role("button", name="Connect").click()
    await page.get_by_role("link", name=f"Allow as {account}").click()
    await page.wait_for_url("**/console/connections")


async def outcome(server: GatehouseServer, key: str) -> str:
    """Call the tool as an agent does. Returns the answer, or the text of the error."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(f"{server.url}/mcp/tickets", http_client=http)) as agent,
    ):
        try:
            return str((await agent.call_tool("echo", {})).content)
        except MCPError as error:
            return str(error)


async def test_a_user_connects_calls_a_tool_and_disconnects(
    server: GatehouseServer, page: Page, sign_in: SignIn, upstream: AccountServer
) -> None:
    # An administrator registers the server, and reads its tools with an account of their own.
    boss = await sign_in("admin", "/console/mcp-servers")
    dialog = modal(page)
    await page.get_by_role("button", name="New server").click()
    await dialog.get_by_label("Name", exact=True).fill("tickets")
    await dialog.get_by_label("URL", exact=True).fill(upstream.url)
    await dialog.get_by_label("Access", exact=True).select_option("open")
    await dialog.get_by_label("Credential").select_option("user_oauth")
    await expect(dialog).to_contain_text(f"{server.url}/connect/tickets/callback")
    await dialog.get_by_label("Client id").fill(CLIENT_ID)
    await dialog.get_by_label("Client secret").fill(CLIENT_SECRET)
    await dialog.get_by_label("Scopes").fill("tools")
    # Without an issuer, the MCP server would choose the authorization server.
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_text("otherwise the MCP server would choose")).to_be_visible()
    await dialog.get_by_label("Issuer").fill(upstream.origin)
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(row(page, "tickets")).to_contain_text("Tools not read")
    await page.goto("/connect/tickets")
    await consent(page, upstream, "boss")
    # The tools are not read yet, so nobody can call them. The connection of an administrator is shown all the same.
    await expect(row(page, "tickets")).to_contain_text("Connected")
    await check_screen(page)
    admin = api(server, boss)
    created = named(admin, "tickets")
    path = f"{BASE}/{created['id']}"
    await asyncio.to_thread(lambda: admin.post(f"{path}/refresh").raise_for_status())
    for tool in admin.get(f"{path}/tools").json()["mcp_tools"]:
        admin.post(f"{path}/tools/{tool['id']}/approve", json={"hash": tool["hash"]}).raise_for_status()

    # A user connects.
    user = await sign_in("user", "/console/connections")
    await expect(row(page, "tickets")).to_contain_text("Not connected")
    await page.emulate_media(color_scheme="dark")
    await check_screen(page)
    await page.emulate_media(color_scheme="light")
    await check_screen(page)
    person = api(server, user)
    key = person.post("/api/auth/api-keys", json={"description": "agent"}).json()["api_key"]
    assert "/connect/tickets" in await outcome(server, key)
    await press(page, page.get_by_role("link", name="Connect tickets"))
    await consent(page, upstream, "ada")
    await expect(row(page, "tickets")).to_contain_text("Connected")
    await check_screen(page)
    assert "text='done'" in await outcome(server, key)
    assert upstream.callers == ["ada"]

    # Administrators see who has connected, and no token.
    await sign_in("admin", f"/console/mcp-servers?server={created['id']}")
    people = dialog.get_by_role("list", name="Connected users")
    await expect(people.get_by_role("listitem")).to_have_count(2)
    await expect(people).to_contain_text(user.email)
    await assert_accessible(page)
    assert not [token for token in upstream.access if token in await page.content()]
    await people.get_by_role("button", name=f"Disconnect {boss.email}").click()
    await page.get_by_role("button", name="Disconnect", exact=True).click()
    await expect(people.get_by_role("listitem")).to_have_count(1)

    # The authorization server ends the consent of the user.
    server.sql("UPDATE mcp_connections SET sealed_tokens = NULL WHERE user_id = %s", [user.id])
    await page.context.clear_cookies()
    person.close()
    await page.context.add_cookies([await session_cookie(server, page, user)])  # type: ignore[list-item]
    await page.goto("/console/connections")
    await expect(row(page, "tickets")).to_contain_text("Expired")
    await page.get_by_role("link", name="Connect tickets again").click()
    await consent(page, upstream, "ada")

    # The user disconnects. The next call asks for an account, and the tokens are revoked.
    await press(page, page.get_by_role("button", name="Disconnect tickets"))
    await expect(dialog).to_contain_text("Your tokens are deleted")
    await assert_accessible(page)
    await press(page, dialog.get_by_role("button", name="Disconnect"))
    await expect(row(page, "tickets")).to_contain_text("Not connected")
    await expect(page.locator(":focus")).to_have_count(1)
    assert "/connect/tickets" in await outcome(server, key)
    for _ in range(60):
        if len([form for form in upstream.revoked if form["token"].startswith("ada")]) == 2:
            break
        await asyncio.sleep(0.5)
    else:
        raise AssertionError("the tokens were not revoked")
    await asyncio.to_thread(lambda: admin.delete(path).raise_for_status())
    admin.close()


async def test_a_stdio_server_is_registered_and_changed(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    admin = api(server, await sign_in("admin", "/console/mcp-servers"))
    dialog = modal(page)
    await page.get_by_role("button", name="New server").click()
    await dialog.get_by_label("Name", exact=True).fill("tracker")
    await dialog.get_by_label("Transport").select_option("stdio")
    await expect(dialog.get_by_label("URL", exact=True)).to_have_count(0)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog.get_by_text("Select a command.")).to_be_visible()
    await dialog.get_by_label("Command").select_option("issue-tracker")
    await dialog.get_by_label("TRACKER_TOKEN").fill(TOKEN)
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_be_hidden()
    await expect(row(page, "tracker")).to_contain_text("issue-tracker")
    assert TOKEN not in await page.content()
    created = named(admin, "tracker")
    assert created["stdio"] == {"command": "issue-tracker", "environment": ["TRACKER_TOKEN"]}

    # Other fields are changed without the values, and the values without other fields.
    path = f"{BASE}/{created['id']}"
    for change in ("description", "value"):
        await page.get_by_role("button", name="Actions for tracker").click()
        await page.get_by_role("menuitem", name="Edit…").click()
        await expect(dialog.get_by_label("Transport")).to_have_count(0)
        if change == "description":
            await dialog.get_by_label("Description").fill("Issues")
        else:
            await dialog.get_by_label("Command").select_option("issue-tracker")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        shown = admin.get(path).json()
        assert shown["description"] == "Issues"
        names = ["TRACKER_TOKEN"]
        # A variable without a new value has no value any more: `environment` names the permitted ones that were sent.
        assert shown["stdio"]["environment"] == (names if change == "description" else [])
    admin.delete(path).raise_for_status()
    admin.close()
