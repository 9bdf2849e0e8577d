"""Another site, or a link in a mail, cannot do anything with a user's signed-in browser. The tests cover every page and
operation, so new ones are tested as soon as they are registered."""

import re
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from tests.support.members import Member, member
from tests.support.operations import CLOSED, filled
from tests.support.pages import Visitor, forms_of
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.platform.administration.contents import FAMILIES

COOKIE = "gatehouse_session"
HOST = "gatehouse.test"


def _pages() -> Iterator[tuple[str, str]]:
    """Yield the pages, which only browsers call. They are not in the OpenAPI document."""
    for family in FAMILIES:
        for route in family.routes:
            if isinstance(route, APIRoute) and not route.include_in_schema and not route.path.startswith("/api/"):
                for method in sorted(route.methods or ()):
                    yield method, route.path_format


PAGES = sorted(set(_pages()))
FORMS = [path for method, path in PAGES if method == "POST"]
#: Names of parameters with the address to which a browser is redirected.
WHERE = [
    "next",
    "relay_state",
    "RelayState",
    "redirect_uri",
    "post_logout_redirect_uri",
    "return_to",
    "url",
    "continue",
]
ELSEWHERE = [
    "https://evil.test/",
    "//evil.test/",
    "///evil.test",
    "/\\evil.test",
    "\\\\evil.test",
    "/\t/evil.test",
    "http:evil.test",
    "javascript:alert(1)",
    "https://gatehouse.test@evil.test/",
    "https://gatehouse.test.evil.test/",
    "/%0d%0aLocation:%20https://evil.test",
    "%2f%2fevil.test",
    "/..//evil.test",
    "https:/\\evil.test",
]
#: Operations to which browsers are redirected, in addition to the pages.
LANDINGS = ["/oauth/authorize", "/api/saml/login", "/api/saml/slo", "/api/saml/acs"]


@pytest.fixture
async def ada(platform: RunningPlatform, somebody: Tenant) -> Member:
    return await member(platform, somebody, role="admin", signed_in=False)


@pytest.fixture
async def victim(platform: RunningPlatform, ada: Member) -> AsyncIterator[Visitor]:
    """A browser with a signed-in user."""
    visitor = Visitor(platform, f"http://{HOST}")
    await visitor.sign_in(ada.email)
    assert visitor.cookie() is not None, visitor.page.text
    yield visitor
    await visitor.client.aclose()


async def signed_in(visitor: Visitor, who: Member) -> bool:
    return who.email in (await visitor.get("/login")).text


async def test_the_cookie_is_accepted_by_pages_and_by_no_operation(victim: Visitor, ada: Member) -> None:
    for method, path in CLOSED:
        answer = await victim.client.request(method, filled(path))
        assert answer.status_code == 401, (method, path)
    assert await signed_in(victim, ada)


async def test_the_cookies_secret_is_no_token(platform: RunningPlatform, victim: Visitor) -> None:
    secret = victim.cookie()
    assert secret is not None
    for path in ("/v1/models", "/api/admin/users", "/api/auth/sessions", "/api/scim/v2/Users", "/oauth/userinfo"):
        assert (await platform.client(secret).get(path)).status_code == 401


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.test"}, {"Origin": "null"}])
async def test_a_form_that_another_site_posts_is_refused(
    victim: Visitor, ada: Member, path: str, headers: dict[str, str]
) -> None:
    form = {"email": ada.email, "password": "x", "token": "x", "code": "000000", "method": "totp", "repeated": "x"}
    before = dict(victim.client.cookies)
    answer = await victim.client.post(filled(path), data=form, headers=headers)
    assert answer.status_code == 403, answer.text
    assert victim.cookie() == before[COOKIE]
    assert await signed_in(victim, ada)


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_with_the_proof_of_the_attackers_own_browser_is_refused(
    platform: RunningPlatform, victim: Visitor, ada: Member, path: str
) -> None:
    attacker = Visitor(platform, f"http://{HOST}")
    await attacker.get("/login")
    proofs = re.findall(r'<input[^>]*type="hidden"[^>]*>', attacker.page.text)
    fields = {name: value for proof in proofs for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', proof)}
    assert fields
    await attacker.client.aclose()
    assert (await victim.client.post(filled(path), data=fields)).status_code == 403
    assert await signed_in(victim, ada)


async def test_opening_a_link_does_not_end_the_session(victim: Visitor, ada: Member) -> None:
    for method, path in PAGES:
        if method == "GET":
            await victim.client.get(filled(path))
    assert await signed_in(victim, ada)


def leads_elsewhere(location: str) -> bool:
    """Return whether browsers would leave the platform for this address. They drop tabs and line ends, and treat
    backslashes like slashes."""
    parts = urlsplit(re.sub(r"[\t\r\n]", "", location).replace("\\", "/"))
    return parts.scheme not in {"", "http"} or parts.netloc not in {"", HOST}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
async def test_no_link_redirects_a_browser_to_another_site(victim: Visitor, elsewhere: str) -> None:
    for path in [*(page for method, page in PAGES if method == "GET"), *LANDINGS]:
        for name in WHERE:
            answer = await victim.client.get(filled(path), params={name: elsewhere})
            assert answer.status_code < 500 or answer.status_code == 503, (path, name, answer.text)
            assert not leads_elsewhere(answer.headers.get("location", "")), (path, name)
            assert "refresh" not in answer.headers


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
async def test_signing_in_and_out_redirect_to_no_other_site(
    platform: RunningPlatform, ada: Member, elsewhere: str
) -> None:
    visitor = Visitor(platform, f"http://{HOST}")
    await visitor.client.get("/login", params={"next": elsewhere})
    await visitor.get("/login")
    await visitor.fill(email=ada.email, password=PASSWORD, next=elsewhere)
    assert visitor.page.status_code == 303
    assert not leads_elsewhere(visitor.page.headers["location"])
    await visitor.get("/login")
    await visitor.fill(next=elsewhere)
    assert visitor.page.status_code == 303
    assert not leads_elsewhere(visitor.page.headers["location"])
    await visitor.client.aclose()


@pytest.mark.parametrize("planted", ["", "x", "gws_" + "a" * 43, "another's"])
async def test_a_planted_cookie_is_invalid_after_the_sign_in(
    platform: RunningPlatform, ada: Member, planted: str
) -> None:
    attacker = Visitor(platform, f"http://{HOST}")
    if planted == "another's":
        # The attacker's own valid session.
        await attacker.sign_in(ada.email)
        planted = attacker.cookie() or ""
    visitor = Visitor(platform, f"http://{HOST}")
    visitor.client.headers["Cookie"] = f"{COOKIE}={planted}"
    await visitor.get("/login?next=/oauth/authorize")
    form = forms_of(visitor.page)[0].fields | {"email": ada.email, "password": PASSWORD}
    proof = visitor.cookie("gatehouse_form")
    headers = {"Cookie": f"{COOKIE}={planted}; gatehouse_form={proof}"}
    answer = await visitor.client.post("/login", data=form, headers=headers)
    (result,) = [item for item in answer.headers.get_list("set-cookie") if item.startswith(f"{COOKIE}=")]
    assert planted not in result.split(";")[0].split("=")
    for item in (attacker, visitor):
        await item.client.aclose()


@pytest.mark.parametrize("origin", ["https://evil.test", "null", "http://gatehouse.test.evil.test"])
async def test_scripts_of_other_sites_cannot_read_answers(victim: Visitor, origin: str) -> None:
    for method, path in [("GET", "/login"), ("OPTIONS", "/api/admin/users"), ("GET", "/v1/models")]:
        answer = await victim.client.request(
            method, path, headers={"Origin": origin, "Access-Control-Request-Method": "GET"}
        )
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
