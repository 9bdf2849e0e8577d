"""An organization with an identity provider, and a browser in front of the platform."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.support import saml
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import AssertionFields, Signer

from gatehouse.platform.changes.change import DEFAULT_TENANT

BASE = "http://127.0.0.1"
IDP = "/api/admin/saml/idp"


@pytest.fixture(scope="session")
def signer() -> Signer:
    """The identity provider's key."""
    return Signer.new()


@pytest.fixture(scope="session")
def stranger() -> Signer:
    """A key that no organization trusts."""
    return Signer.new()


@pytest.fixture
async def browser(platform: RunningPlatform) -> AsyncIterator[httpx2.AsyncClient]:
    async with new_browser(platform) as client:
        yield client


def new_browser(platform: RunningPlatform) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=platform.app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url=BASE, timeout=60)


@dataclass
class SignOn:
    """A configured identity provider, and the assertion fields of the organization's user."""

    platform: RunningPlatform
    tenant: Tenant
    browser: httpx2.AsyncClient
    signer: Signer
    idp_id: str
    entity_id: str

    async def begin(self, relay_state: str | None = None, *, browser: httpx2.AsyncClient | None = None) -> str:
        """Start a sign-in and return the id of its request."""
        query = {"idp_id": self.idp_id, **({} if relay_state is None else {"relay_state": relay_state})}
        answer = await (browser or self.browser).get("/api/saml/login", params=query)
        assert answer.status_code == 302, answer.text
        request_id: str = saml.message_in_url(answer.headers["location"], "SAMLRequest").get("ID")
        return request_id

    async def assertion_fields(self, **changes: Any) -> AssertionFields:
        """Return the assertion fields of the response to a sign-in that has started."""
        valid_fields = {"issuer": self.entity_id, "gatehouse_url": BASE, "email": self.tenant.user.email}
        if "in_response_to" not in changes:
            valid_fields["in_response_to"] = await self.begin()
        return AssertionFields(**{**valid_fields, **changes})

    async def post(self, root: Any, *, browser: httpx2.AsyncClient | None = None) -> httpx2.Response:
        form = {"SAMLResponse": root if isinstance(root, str) else saml.encoded(root), "RelayState": ""}
        return await (browser or self.browser).post("/api/saml/acs", data=form)

    async def sign_in(self, **changes: Any) -> httpx2.Response:
        return await self.post(saml.signed(await self.assertion_fields(**changes), self.signer))

    def sessions(self) -> list[UUID]:
        """Return the sessions that single sign-on has opened."""
        rows = self.platform.sql(
            "SELECT id FROM sessions WHERE tenant_id = %s AND amr @> '[\"saml\"]'", [self.tenant.id]
        )
        return [row[0] for row in rows]


async def configured(
    platform: RunningPlatform, tenant: Tenant, browser: httpx2.AsyncClient, signer: Signer, **config: Any
) -> SignOn:
    entity_id = config.pop("entity_id", f"https://idp-{uuid4().hex[:8]}.test/saml")
    body = {
        "name": "Acme",
        "entity_id": entity_id,
        "sso_url": "https://idp.test/sso?app=1&kind=2",
        "slo_url": "https://idp.test/slo",
        "x509_cert": signer.certificate,
        **config,
    }
    created = await tenant.admin.client.post(IDP, json=body)
    assert created.status_code == 201, created.text
    # Marks the users as linked, as after an earlier sign-in. `test_linking.py` tests the linking.
    people = [tenant.admin.id, tenant.auditor.id, tenant.user.id]
    platform.sql("UPDATE users SET linked_at = now() WHERE id = ANY(%s)", [people])
    return SignOn(platform, tenant, browser, signer, created.json()["id"], entity_id)


@pytest.fixture
async def sign_on(platform: RunningPlatform, tenant: Tenant, browser: httpx2.AsyncClient, signer: Signer) -> SignOn:
    return await configured(platform, tenant, browser, signer)


def fields_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def prove(platform: RunningPlatform, tenant: Tenant, domain: str, *, jit: bool, group: str | None = None) -> None:
    platform.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, jit_provisioning, default_group_id, verified_at)"
        " VALUES (%s, %s, %s, %s, now())",
        [tenant.id, domain, jit, group],
    )


async def assert_refused(sign_on: SignOn, answer: httpx2.Response, reason: str, *, in_default: bool = False) -> None:
    assert (answer.status_code, answer.json().get("reason")) == (400, reason), answer.text
    assert answer.json()["detail"]
    assert "gatehouse_session" not in answer.cookies
    assert sign_on.sessions() == []
    chain = DEFAULT_TENANT if in_default else sign_on.tenant.id
    event = (await sign_on.platform.audit(chain, "saml.refused"))[-1]
    assert (event["outcome"], event["reason"]) == ("failure", reason)
    assert event["resource_id"] == (None if in_default else sign_on.idp_id)
    assert event["details"]["message"] == answer.json()["detail"]
