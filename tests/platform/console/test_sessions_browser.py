"""The sessions that tests of the console open without the sign-in pages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, enter_password, session_cookie
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

from gatehouse.platform.access.browser.cookie import COOKIE_NAME

pytestmark = needs_chromium

#: Ids and times. `tokens_until` is set when the console exchanges the cookie for a token.
DIFFERENT = {"id", "user_id", "created_at", "last_seen_at", "expires_at", "tokens_until"}


def rows_of(server: GatehouseServer, user: OtherUser) -> tuple[dict[str, Any], list[timedelta]]:
    """Return the fields of the user's session that every session of a browser has in common, and its times: until it
    ends, and between the session and the sign-in."""
    columns = [name for (name,) in server.sql(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'sessions'"
    )]  # fmt: skip
    (row,) = server.sql(f"SELECT {', '.join(columns)} FROM sessions WHERE user_id = %s", [user.id])
    session = dict(zip(columns, row, strict=True))
    ((last_login_at, cookie_at),) = server.sql(
        "SELECT u.last_login_at, b.created_at FROM users u JOIN sessions s ON s.user_id = u.id"
        " JOIN browser_sessions b ON b.session_id = s.id WHERE u.id = %s",
        [user.id],
    )
    opened = session["created_at"]
    # The console extends the session when it opens.
    times = [session["expires_at"] - session["last_seen_at"], last_login_at - opened]
    # The cookie of the session is stored right after it.
    assert abs(cookie_at - opened) < timedelta(seconds=30)
    return {name: value for name, value in session.items() if name not in DIFFERENT}, times


async def test_the_session_of_a_test_equals_that_of_a_sign_in(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> None:
    signed_in, opened = new_user("user"), new_user("user")
    await page.goto("/console")
    await enter_password(page, signed_in.email)
    await expect(page.get_by_role("button", name="Account")).to_be_visible()
    (real,) = [cookie for cookie in await page.context.cookies() if cookie["name"] == COOKIE_NAME]

    cookie = await session_cookie(server, page, opened)
    assert rows_of(server, opened) == rows_of(server, signed_in)
    assert (cookie["httpOnly"], cookie["sameSite"]) == (real["httpOnly"], real["sameSite"])
    # The cookie works.
    await page.context.clear_cookies()
    await page.context.add_cookies([cookie])  # type: ignore[list-item]
    await page.goto("/console")
    await expect(page.get_by_role("button", name="Account")).to_be_visible()
