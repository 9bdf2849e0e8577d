"""Pages that violate their content security policy fail their test, whatever Chromium says about it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Browser
from tests.support.chromium import needs_chromium, page_of

pytestmark = needs_chromium

POLICY = "default-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
INLINE_SCRIPT = "<script>document.title = 'run'</script>"
INLINE_STYLE = '<p style="color: red">red</p>'
STYLE_BY_SCRIPT = '<p id="place"></p><script src="/script.js"></script>'
HTML_FROM_TEXT = "document.getElementById('place').innerHTML = '<b>x</b>'"
EVALUATION = "new Function('return 1')"


@asynccontextmanager
async def serving(header: str, page: str, script: str) -> AsyncIterator[str]:
    """Serve a page with the policy in the header, and yield its address."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/script.js":
            return web.Response(text=f"try {{ {script} }} catch {{ }}", content_type="text/javascript")
        body = f"<!doctype html><title>A page</title>{page}"
        return web.Response(text=body, content_type="text/html", headers={header: POLICY})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def opened(chrome: Browser, url: str) -> None:
    context = await chrome.new_context()
    try:
        async with page_of(context) as page:
            await page.goto(url, wait_until="networkidle")
    finally:
        await context.close()


@pytest.mark.parametrize("header", ["Content-Security-Policy", "Content-Security-Policy-Report-Only"])
@pytest.mark.parametrize(
    ("page", "script"),
    [(INLINE_SCRIPT, ""), (INLINE_STYLE, ""), (STYLE_BY_SCRIPT, HTML_FROM_TEXT), (STYLE_BY_SCRIPT, EVALUATION)],
)
async def test_a_page_that_violates_its_policy_fails(chrome: Browser, header: str, page: str, script: str) -> None:
    async with serving(header, page, script) as url:
        with pytest.raises(AssertionError, match="security policy"):
            await opened(chrome, url)


@pytest.mark.parametrize("header", ["Content-Security-Policy", "Content-Security-Policy-Report-Only"])
async def test_a_page_that_obeys_its_policy_passes(chrome: Browser, header: str) -> None:
    script = "document.getElementById('place').style.color = 'red'"
    async with serving(header, STYLE_BY_SCRIPT, script) as url:
        await opened(chrome, url)
