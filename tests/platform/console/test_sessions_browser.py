"""The sessions that tests of the console open without the sign-in pages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from playwright.async_api import Page, expect
from tests.platform.console.conftest import OtherUser, enter_password, session_cookie
from tests.support.chromium import needs_chromium
from tests.support.server import GatehouseServer

pytestmark = needs_chromium

#: Ids, and times since the session was opened.
DIFFERENT = {"id", "user_id", "created_at", "last_seen_at", "expires_at"}


def rows_of(server: GatehouseServer, user: OtherUser) -> tuple[dict[str, Any], list[timedelta]]:
    """Return the fields of the user's session that every session of a browser has in common, and its times: until it
    ends, and since the session, the sign-in and the cookie began."""
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
    times = [session["expires_at"] - opened, session["last_seen_at"] - opened, last_login_at - opened]
    # The cookie of the session is stored right after it.
    assert abs(cookie_at - opened) < timedelta(seconds=30)
    return {name: value for name, value in session.items() if name not in DIFFERENT}, times


async def test_the_session_of_a_test_equals_that_of_a_sign_in(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> None:
    signed_in, opened = new_user("user"), new_user("user")
    # The page of sign-in opens the session. The console, which extends it, is not loaded.
    await page.route("**/console**", lambda route: route.fulfill(body=""))
    await page.goto("/login")
    async with page.expect_response(lambda answer: answer.request.method == "POST") as answered:
        await enter_password(page, signed_in.email)
    assert "set-cookie" in await (await answered.value).all_headers()
    await page.wait_for_url("**/console")
    (real,) = await page.context.cookies()

    cookie = await session_cookie(server, page, opened)
    assert rows_of(server, opened) == rows_of(server, signed_in)
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (
        real["name"],
        real["httpOnly"],
        real["sameSite"],
    )
    # The cookie works.
    await page.unroute("**/console**")
    await page.context.clear_cookies()
    await page.context.add_cookies([cookie])  # type: ignore[list-item]
    await page.goto("/console")
    await expect(page.get_by_role("button", name="Account")).to_be_visible()
