"""The console in a real browser, against a real server."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import httpx2
import pytest
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect
from psycopg.types.json import Jsonb
from tests.support import chromium
from tests.support.accessibility import AXE, assert_accessible, assert_no_violations
from tests.support.chromium import PHONE, page_of
from tests.support.members import HASH
from tests.support.platform import PASSWORD
from tests.support.server import GatehouseServer

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.tokens import mint_token
from gatehouse.platform.access.browser.cookie import COOKIE_NAME
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.console.files import BUILT, INDEX
from gatehouse.platform.live.replica.sign_in_policies import SessionRules

ROOT: Final = Path(__file__).parents[3]
CONSOLE: Final = ROOT / "console"
#: The goal for the size of the first load, compressed with brotli. The first load consists of all files under /console
#: that the browser loads before the overview with its charts is drawn. Answers of the API are not counted.
#: `test_first_load_browser` counts all of it in Chromium. `test_build` needs no browser, and counts only the scripts
#: and styles that index.html names.
MAX_FIRST_LOAD_BYTES: Final = 250_000
#: Limits that the sign-ins of tests do not reach.
TIERS: Final = '{"/login": 100000000, "/console": 100000000, "POST /api/auth/session/token": 100000000}'
DESK: Final = {"width": 1440, "height": 900}


@dataclass
class OtherUser:
    """A user of the tenant `default`, with a password."""

    id: UUID
    email: str
    role: str


@pytest.fixture(scope="session")
def console() -> Path:
    """The folder of the built files."""
    if not (BUILT / INDEX).is_file() or not AXE.is_file():
        pytest.skip("the console is not built: make setup")
    return BUILT


@pytest.fixture(scope="session")
def server(console: Path) -> Iterator[GatehouseServer]:
    """A server that all modules share. Tests therefore make their own objects, and search lists for them."""
    with GatehouseServer(env={"RATE_LIMIT_TIERS": TIERS}) as running:
        yield running


@pytest.fixture(scope="session")
async def chrome() -> AsyncIterator[Browser]:
    async with chromium.browser() as started:
        yield started


@pytest.fixture(scope="session")
async def contexts(chrome: Browser) -> AsyncIterator[dict[str, BrowserContext]]:
    """The browser's context of each server, by its URL."""
    opened: dict[str, BrowserContext] = {}
    yield opened
    for one in opened.values():
        await one.close()


@pytest.fixture
async def context(
    chrome: Browser, server: GatehouseServer, contexts: dict[str, BrowserContext]
) -> AsyncIterator[BrowserContext]:
    """A context that has nothing of earlier tests but the console's files in its cache: a cold load of the console
    takes half as much processor time again."""
    if server.url not in contexts:
        contexts[server.url] = await new_context(chrome, server)
    shared = contexts[server.url]
    yield shared
    for number, opened in enumerate(shared.pages):
        if number == 0:
            browser = await shared.new_cdp_session(opened)
            await browser.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "local_storage"})
        await opened.close()
    await shared.clear_cookies()
    await shared.clear_permissions()


async def new_context(chrome: Browser, server: GatehouseServer) -> BrowserContext:
    return await chrome.new_context(base_url=server.url, viewport=DESK)  # type: ignore[arg-type]


@pytest.fixture
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    async with page_of(context) as opened:
        yield opened


@pytest.fixture
def new_user(server: GatehouseServer) -> Callable[[str], OtherUser]:
    """Create a user with a role."""

    def make(role: str) -> OtherUser:
        user_id, email = new_id(), f"{role}-{uuid4().hex[:10]}@example.test"
        server.sql(
            "INSERT INTO users (id, tenant_id, email, role, password_hash, display_name)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            [user_id, DEFAULT_TENANT, email, role, HASH, f"A test's {role}"],
        )
        server.touch("user", user_id)
        server.settled()
        return OtherUser(user_id, email, role)

    return make


SignIn = Callable[..., Awaitable[OtherUser]]


@pytest.fixture
def sign_in(server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]) -> SignIn:
    """Open the console's `path` in a new session of a new user. `test_screens_browser` signs in through the pages."""

    async def signed_in(role: str = "admin", path: str = "/console") -> OtherUser:
        who = new_user(role)
        await page.context.add_cookies([await session_cookie(server, page, who)])  # type: ignore[list-item]
        await page.goto(path)
        # The button may be behind a dialog that opens with the page.
        await expect(page.get_by_role("button", name="Account", include_hidden=True)).to_be_visible()
        return who

    return signed_in


async def session_cookie(server: GatehouseServer, page: Page, who: OtherUser) -> dict[str, Any]:
    """Open a session of the user in the browser, as a sign-in with the password does, and return its cookie.
    `test_sessions_browser` compares its rows with those of a sign-in through the pages."""
    session_id, minted, rules = new_id(), mint_token("gws_"), SessionRules()
    minutes = min(rules.session_timeout_minutes, rules.idle_timeout_minutes)
    # One statement, so that both have the same time.
    server.sql(
        "WITH session AS (INSERT INTO sessions (id, tenant_id, user_id, expires_at, ip, amr, user_agent)"
        " VALUES (%s, %s, %s, now() + make_interval(mins => %s), '127.0.0.1', %s, %s))"
        " UPDATE users SET last_login_at = now() WHERE id = %s",
        [
            session_id, DEFAULT_TENANT, who.id, minutes, Jsonb(["pwd"]), await page.evaluate("navigator.userAgent"),
            who.id,
        ],
    )  # fmt: skip
    server.sql(
        "INSERT INTO browser_sessions (digest, tenant_id, session_id) VALUES (%s, %s, %s)",
        [minted.digest, DEFAULT_TENANT, session_id],
    )
    return {"name": COOKIE_NAME, "value": minted.plaintext, "url": server.url, "httpOnly": True, "sameSite": "Lax"}


async def enter_password(page: Page, email: str) -> None:
    await page.get_by_label("E-mail or user name").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.keyboard.press("Enter")


def api(server: GatehouseServer, who: OtherUser) -> httpx2.Client:
    """Return a client with its own session."""
    client = httpx2.Client(base_url=server.url, timeout=60)
    answer = client.post("/api/auth/login", json={"email": who.email, "password": PASSWORD})
    client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
    return client


def call_model(
    server: GatehouseServer,
    key: str,
    content: str = "Hello",
    model: str = "sandbox/echo",
    *,
    timeout_seconds: float = 30,
) -> httpx2.Response:
    return httpx2.post(
        f"{server.url}/v1/chat/completions",
        json={"model": model, "messages": [{"role": "user", "content": content}]},
        headers={"Authorization": f"Bearer {key}"},
        timeout=timeout_seconds,
    )


def recorded_call(server: GatehouseServer, key: str, content: str = "Hello", model: str = "sandbox/echo") -> str:
    """Call a model, and return the request's id after its record is stored."""
    request_id: str = call_model(server, key, content, model).headers["x-request-id"]
    deadline = time.monotonic() + 60
    while not server.sql("SELECT 1 FROM usage_records WHERE request_id = %s", [request_id]):
        assert time.monotonic() < deadline, "no record was stored"
        time.sleep(0.02)
    return request_id


async def check_paging(
    page: Page, table: str, mark: str, *, total: int, by_name: bool, rows_per_page: int = 50
) -> None:
    """Go through a list that is searched for `mark`, sort it by name, and search for a single row. The names end with
    two digits, from 00 to `total` less one. `by_name`: the list is sorted by name from the beginning."""
    rows = page.get_by_role("table", name=table, exact=True).get_by_role("row").filter(has_text=mark)
    await expect(rows).to_have_count(rows_per_page)
    pager = page.get_by_role("navigation", name="Pages")
    await expect(pager).to_contain_text(f"of {total}")
    await pager.get_by_role("button", name="Next").click()
    await expect(rows).to_have_count(total - rows_per_page)
    assert "page=2" in page.url
    await page.reload()
    await expect(rows).to_have_count(total - rows_per_page)
    header = page.get_by_role("columnheader", name="Name")
    for order, first in (("ascending", 0), ("descending", total - 1)):
        if order == "descending" or not by_name:
            await header.get_by_role("button").press("Enter")
            await page.wait_for_url(lambda url: "page=" not in url)
        await expect(header).to_have_attribute("aria-sort", order)
        if order == "descending" or not by_name:
            await expect(rows.first).to_contain_text(f"{mark} {first:02}")
    assert "sort=-name" in page.url
    await check_screen(page)
    await page.get_by_role("searchbox").fill(f"{mark} {total - 1:02}")
    await page.keyboard.press("Enter")
    await expect(rows).to_have_count(1)
    await page.get_by_role("searchbox").fill(f"{mark} of nobody")
    await page.keyboard.press("Enter")
    await page.get_by_role("main").get_by_role("button", name="Clear").last.click()
    assert "search=" not in page.url


def modal(page: Page) -> Locator:
    """Return the open dialog. Messages in the corner have the same role, so the selector has another attribute too."""
    return page.locator('[role=dialog][tabindex="-1"]')


async def check_screen(page: Page) -> None:
    """Check that axe finds nothing at the width of a desktop and of a phone, and that the content fits the phone."""
    await assert_accessible(page)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await assert_no_violations(page)
    await page.set_viewport_size(DESK)  # type: ignore[arg-type]
