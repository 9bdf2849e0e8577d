"""A browser without a screen. It stores cookies, follows no redirects, and fills in the forms of pages."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import httpx2
from tests.support.platform import PASSWORD, RunningPlatform


@dataclass
class PageForm:
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(PageForm(attributes["action"], attributes=attributes))
        elif tag == "input":
            self.forms[-1].fields[attributes["name"]] = attributes.get("value", "")


def forms_of(answer: httpx2.Response) -> list[PageForm]:
    result = _Forms()
    result.feed(answer.text)
    return result.forms


class Visitor:
    """`page` is the current page."""

    def __init__(self, platform: RunningPlatform, address: str | None = None) -> None:
        base = address or platform.host.settings.public_url or "http://gatehouse.test"
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=platform.app, raise_app_exceptions=False), base_url=base, timeout=30
        )
        self.page: httpx2.Response

    async def get(self, path: str) -> httpx2.Response:
        self.page = await self.client.get(path)
        return self.page

    async def fill(self, at: int = 0, /, action: str | None = None, **typed: str) -> httpx2.Response:
        """Post a form of the page with these values."""
        form = forms_of(self.page)[at]
        self.page = await self.client.post(action or form.action, data=form.fields | typed)
        return self.page

    async def follow(self) -> httpx2.Response:
        assert self.page.status_code == 303, self.page.text
        return await self.get(self.page.headers["Location"])

    async def sign_in(self, email: str, password: str = PASSWORD, *, path: str = "/login") -> httpx2.Response:
        await self.get(path)
        return await self.fill(email=email, password=password)

    def cookie(self, name: str = "gatehouse_session") -> str | None:
        return self.client.cookies.get(name)


def query_of(answer: httpx2.Response) -> dict[str, str]:
    """Return the parameters of the address to which the answer redirects."""
    return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
