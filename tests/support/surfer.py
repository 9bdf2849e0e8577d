"""A browser without a screen, for platform and portal on real sockets. It stores cookies by host, follows redirects on
request, and sends the origin of forms."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from tests.support.pages import PageForm, forms_of


@dataclass
class Person:
    """Create a user of the platform with a password."""

    id: str
    tenant_id: str
    email: str
    password: str


class Surfer:
    """`page` is the current page."""

    def __init__(self, portal_url: str, platform_url: str) -> None:
        self.portal, self.platform = portal_url, platform_url
        self.client = httpx2.AsyncClient(timeout=60)
        self.page: httpx2.Response

    @property
    def at(self) -> str:
        """Return the path of the current page."""
        return urlsplit(str(self.page.url)).path

    async def get(self, address: str) -> httpx2.Response:
        """A path without a host is on the portal."""
        self.page = await self.client.get(urljoin(self.portal, address), headers={"Accept": "text/html"})
        return self.page

    async def follow(self) -> httpx2.Response:
        assert self.page.status_code == 303, self.page.text
        return await self.get(urljoin(str(self.page.url), self.page.headers["Location"]))

    async def follow_all(self) -> httpx2.Response:
        while self.page.status_code == 303:
            await self.follow()
        return self.page

    def form(self, action: str) -> PageForm:
        return next(form for form in forms_of(self.page) if form.action == action)

    async def submit(self, action: str, /, *, files: Any = None, **typed: str) -> httpx2.Response:
        """Submit the page's form with this action and these values."""
        form = self.form(action)
        fields = {name: value for name, value in form.fields.items() if name} | typed
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(str(self.page.url)))
        self.page = await self.client.post(
            urljoin(str(self.page.url), form.action),
            data=fields,
            files=files,
            headers={"Origin": origin, "Accept": "text/html"},
        )
        return self.page

    async def send(self, path: str, body: Any = None, *, origin: str | None = "", **headers: str) -> httpx2.Response:
        """Send a request like a script of the page: with the cookie and the origin."""
        text = {"Origin": self.portal if origin == "" else origin, **headers}
        return await self.client.post(
            self.portal + path, json=body, headers={name: value for name, value in text.items() if value is not None}
        )

    async def to_the_platform(self, who: Person, *, path: str = "/v1/auth/sso/login") -> httpx2.Response:
        """Sign in up to the redirect to the portal, which is not followed."""
        await self.get(path)
        await self.follow()
        while not (self.page.headers.get("Location") or "").startswith(self.portal):
            if self.page.status_code == 303:
                await self.follow()
            else:
                await self.submit("/login", email=who.email, password=who.password)
        return self.page

    async def sign_in(self, who: Person, *, path: str = "/v1/auth/sso/login") -> httpx2.Response:
        """Follow redirects to the last page."""
        await self.to_the_platform(who, path=path)
        return await self.follow_all()

    @property
    def coming_back(self) -> dict[str, str]:
        """Return the parameters of the platform's redirect."""
        return dict(parse_qsl(urlsplit(self.page.headers["Location"]).query))

    def cookie(self, name: str = "gatehouse_portal") -> str | None:
        return self.client.cookies.get(name)

    @property
    def begun(self) -> list[str]:
        """Return the cookies of sign-ins in progress, by name."""
        return [cookie.name for cookie in self.client.cookies.jar if cookie.name.startswith("gatehouse_portal_sign_in")]
