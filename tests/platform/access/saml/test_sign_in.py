"""SAML sign-in: the responses that open a session, and the user of the session (docs/saml.md)."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.platform.access.saml.conftest import BASE, SignOn, configured, fields_of, new_browser, prove
from tests.support import saml
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import NS, Signer, assertion_of, response_text, sign, signed, tree

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.browser import extend_session
from gatehouse.platform.access.sessions.lifetimes import access_token_seconds
from gatehouse.platform.changes.change import Change
from gatehouse.platform.organization.policies.table import session_policy

MAIL_OID = "urn:oid:0.9.2342.19200300.100.1.3"


def account(platform: RunningPlatform, tenant: Tenant, email: str) -> tuple[Any, ...] | None:
    rows = platform.sql(
        "SELECT id, role, username, email_verified, password_hash FROM users WHERE tenant_id = %s AND email = %s",
        [tenant.id, email],
    )
    return rows[0] if rows else None


def groups_of(platform: RunningPlatform, user_id: UUID) -> set[str]:
    rows = platform.sql(
        "SELECT g.name FROM group_members m JOIN groups g ON g.id = m.group_id WHERE m.user_id = %s", [user_id]
    )
    return {row[0] for row in rows}


# the request to the provider ----------------------------------------------------------------------------------------


async def test_a_sign_in_starts_with_a_request_to_the_provider(sign_on: SignOn) -> None:
    query = {"idp_id": sign_on.idp_id, "relay_state": "/somewhere?x=1"}
    answer = await sign_on.browser.get("/api/saml/login", params=query)
    assert answer.status_code == 302
    url = answer.headers["location"]
    assert url.startswith("https://idp.test/sso?app=1&kind=2&SAMLRequest=")
    assert fields_of(url)["RelayState"] == "/somewhere?x=1"
    request = saml.message_in_url(url, "SAMLRequest")
    assert request.get("Destination") == "https://idp.test/sso?app=1&kind=2"
    assert request.get("AssertionConsumerServiceURL") == f"{BASE}/api/saml/acs"
    assert request.findtext("saml:Issuer", namespaces=NS) == f"{BASE}/api/saml/metadata"


@pytest.mark.parametrize("query", [{}, {"idp_id": "x"}, {"idp_id": ""}])
async def test_a_sign_in_without_a_provider_is_400_and_names_the_field(
    browser: httpx2.AsyncClient, query: dict[str, str]
) -> None:
    refused = await browser.get("/api/saml/login", params=query)
    assert (refused.status_code, refused.json()["detail"][0]["loc"][-1]) == (400, "idp_id")


@pytest.mark.parametrize("relay_state", [None, "/oauth/authorize?state=" + "x" * 5000])
async def test_the_relay_state_of_the_request_has_at_most_80_bytes(sign_on: SignOn, relay_state: str | None) -> None:
    """The platform stores a longer destination with the request."""
    query = {"idp_id": sign_on.idp_id, **({"relay_state": relay_state} if relay_state else {})}
    url = (await sign_on.browser.get("/api/saml/login", params=query)).headers["location"]
    assert 0 < len(fields_of(url)["RelayState"]) <= 80
    answer = await sign_on.sign_in(in_response_to=saml.message_in_url(url, "SAMLRequest").get("ID"))
    assert answer.headers["location"] == (relay_state or "/")


async def test_an_unknown_or_inactive_provider_is_404(sign_on: SignOn) -> None:
    unknown = await sign_on.browser.get("/api/saml/login", params={"idp_id": str(uuid4())})
    await sign_on.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json={"is_active": False})
    inactive = await sign_on.browser.get("/api/saml/login", params={"idp_id": sign_on.idp_id})
    assert (unknown.status_code, inactive.status_code) == (404, 404)


FOREIGN_ADDRESSES = [
    "https://attacker.test/", "//attacker.test", "/\\attacker.test", "\\\\attacker.test", "javascript:alert(1)",
    "http:attacker.test", "http:///attacker.test", f"{BASE}@attacker.test/", f"{BASE}.attacker.test/", " /x", "/\t/x",
    "/x\r\nSet-Cookie: a=b", "x", "data:text/html,x", "http://[", f"{BASE}:81/", "/" + "x" * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("relay_state", FOREIGN_ADDRESSES)
async def test_a_sign_in_does_not_redirect_to_foreign_addresses(sign_on: SignOn, relay_state: str) -> None:
    """The target may come from the browser or the provider."""
    root = signed(await sign_on.assertion_fields(in_response_to=await sign_on.begin(relay_state)), sign_on.signer)
    form = {"SAMLResponse": saml.encoded(root), "RelayState": relay_state}
    answer = await sign_on.browser.post("/api/saml/acs", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize("relay_state", ["/somewhere?x=1#y", f"{BASE}/elsewhere"])
async def test_a_sign_in_redirects_to_the_requested_page(sign_on: SignOn, relay_state: str) -> None:
    request_id = await sign_on.begin(relay_state)
    answer = await sign_on.sign_in(in_response_to=request_id)
    assert (answer.status_code, answer.headers["location"]) == (303, relay_state)


async def test_the_relay_state_of_the_response_takes_precedence(sign_on: SignOn) -> None:
    root = signed(await sign_on.assertion_fields(in_response_to=await sign_on.begin("/begun")), sign_on.signer)
    form = {"SAMLResponse": saml.encoded(root), "RelayState": "/answered"}
    assert (await sign_on.browser.post("/api/saml/acs", data=form)).headers["location"] == "/answered"


async def test_single_sign_on_needs_the_platforms_address(platform: RunningPlatform) -> None:
    """An address from a header could be forged, and with it the audience."""
    for path in ("/api/saml/metadata", f"/api/saml/login?idp_id={uuid4()}"):
        refused = await platform.anonymous.get(path, headers={"Host": "attacker.test"})
        assert refused.status_code == 503
        assert "PUBLIC_URL" in refused.json()["detail"]


@pytest.mark.parametrize("form", [{}, {"SAMLResponse": ""}, {"RelayState": "/"}])
async def test_a_form_without_a_response_is_400(browser: httpx2.AsyncClient, form: dict[str, str]) -> None:
    refused = await browser.post("/api/saml/acs", data={"x": "y", **form})
    assert (refused.status_code, refused.json()["detail"][0]["loc"][-1]) == (400, "SAMLResponse")


# the session --------------------------------------------------------------------------------------------------------


async def test_a_signed_assertion_opens_a_session_in_the_browser(sign_on: SignOn) -> None:
    answer = await sign_on.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text
    assert "gatehouse_session" in sign_on.browser.cookies
    (session_id,) = sign_on.sessions()
    (event,) = await sign_on.platform.audit(sign_on.tenant, "login.succeeded")
    assert event["actor_id"] == str(sign_on.tenant.user.id)
    assert (event["details"]["session_id"], event["details"]["amr"]) == (str(session_id), ["saml"])


async def test_a_session_ends_at_the_providers_deadline(sign_on: SignOn, platform: RunningPlatform) -> None:
    """The deadline applies regardless of use and of the organization's policy."""
    assert (await sign_on.sign_in(session_until=120)).status_code == 303
    (session_id,) = sign_on.sessions()
    query = "SELECT expires_at, not_after, now() FROM sessions WHERE id = %s"
    ((expires, not_after, now),) = platform.sql(query, [session_id])
    assert expires == not_after
    assert 110 < (expires - now).total_seconds() <= 120
    async with platform.host.database.tenant(TenantId(sign_on.tenant.id)) as session:
        used_session = await extend_session(Change(session, None, tenant_id=TenantId(sign_on.tenant.id)), session_id)
        assert used_session is not None
        assert used_session.expires_at == not_after
        assert access_token_seconds(used_session, await session_policy(session)) <= 120
    platform.sql("UPDATE sessions SET not_after = now() WHERE id = %s", [session_id])
    assert sign_on.tenant.user.email not in (await sign_on.browser.get("/login")).text


async def test_a_providers_deadline_does_not_prolong_a_session(sign_on: SignOn, platform: RunningPlatform) -> None:
    policy = json.dumps({"session_timeout_minutes": 60, "idle_timeout_minutes": 30})
    platform.sql("UPDATE tenants SET session_policy = %s WHERE id = %s", [policy, sign_on.tenant.id])
    assert (await sign_on.sign_in(session_until=86_400)).status_code == 303
    query = "SELECT expires_at - created_at FROM sessions WHERE id = %s"
    assert platform.sql(query, [sign_on.sessions()[0]])[0][0] == timedelta(minutes=30)


async def test_a_cookie_set_in_advance_is_invalid_after_sign_in(sign_on: SignOn) -> None:
    planted = "gws_" + "x" * 43
    sign_on.browser.cookies.set("gatehouse_session", planted)
    answer = await sign_on.sign_in()
    assert answer.cookies["gatehouse_session"] != planted
    digests = sign_on.platform.sql("SELECT digest FROM browser_sessions WHERE tenant_id = %s", [sign_on.tenant.id])
    assert digests == [(tokens.digest(answer.cookies["gatehouse_session"]),)]


async def test_two_concurrent_sign_ins_in_one_browser_both_succeed(sign_on: SignOn) -> None:
    first, second = await sign_on.begin("/first"), await sign_on.begin("/second")
    for request_id, target in ((second, "/second"), (first, "/first")):
        answer = await sign_on.sign_in(in_response_to=request_id)
        assert answer.headers["location"] == target
    # The first session has ended, because the browser now has the cookie of the second session.
    states = sign_on.platform.sql(
        "SELECT revoked_reason FROM sessions WHERE id = ANY(%s) ORDER BY created_at", [sign_on.sessions()]
    )
    assert states == [("signed_in_again",), (None,)]


async def test_signing_in_ends_the_browsers_earlier_session_without_its_cookie(
    sign_on: SignOn, other_tenant: Tenant, signer: Signer
) -> None:
    """Browsers send no session cookie with a form of another site."""
    platform, browser = sign_on.platform, sign_on.browser
    elsewhere = await configured(platform, other_tenant, browser, signer)
    for where in (sign_on, sign_on, elsewhere):
        fields = await where.assertion_fields()
        old_cookie = browser.cookies.pop("gatehouse_session", None)
        assert (await where.post(saml.signed(fields, signer))).status_code == 303
        assert browser.cookies["gatehouse_session"] != old_cookie
    query = "SELECT revoked_reason FROM sessions WHERE id = ANY(%s) ORDER BY created_at"
    assert platform.sql(query, [sign_on.sessions()]) == [("signed_in_again",)] * 2
    assert platform.sql(query, [elsewhere.sessions()]) == [(None,)]
    # Each event is in the chain of the session's organization, with the session's user as the actor.
    ended = await platform.audit(sign_on.tenant, "session.ended")
    theirs = (str(sign_on.tenant.user.id), "signed_in_again")
    assert [(outcome["actor_id"], outcome["reason"]) for outcome in ended] == [theirs] * 2
    assert await platform.audit(other_tenant, "session.ended") == []
    (event,) = await platform.audit(other_tenant, "login.succeeded")
    assert event["actor_id"] == str(other_tenant.user.id)


async def test_starting_a_sign_in_or_a_refused_response_ends_no_session(sign_on: SignOn) -> None:
    assert (await sign_on.sign_in()).status_code == 303
    sign_on.platform.sql("UPDATE users SET is_active = false WHERE id = %s", [sign_on.tenant.auditor.id])
    fields = await sign_on.assertion_fields(email=sign_on.tenant.auditor.email)
    sign_on.browser.cookies.pop("gatehouse_session")
    assert (await sign_on.post(saml.signed(fields, sign_on.signer))).status_code == 403
    query = "SELECT revoked_at FROM sessions WHERE id = ANY(%s)"
    assert sign_on.platform.sql(query, [sign_on.sessions()]) == [(None,)]


@pytest.mark.parametrize("message_too", [False, True])
@pytest.mark.parametrize("kind", ["rsa", "ec"])
async def test_assertions_are_signed_with_rsa_or_an_elliptic_curve(
    platform: RunningPlatform, tenant: Tenant, browser: httpx2.AsyncClient, kind: str, message_too: bool
) -> None:
    sign_on = await configured(platform, tenant, browser, Signer.new(kind))
    root = signed(await sign_on.assertion_fields(), sign_on.signer, message_too=message_too)
    assert (await sign_on.post(root)).status_code == 303


async def test_two_certificates_are_valid_during_a_key_rotation(
    sign_on: SignOn, signer: Signer, stranger: Signer
) -> None:
    path, admin = f"/api/admin/saml/idp/{sign_on.idp_id}", sign_on.tenant.admin.client
    assert (await sign_on.post(signed(await sign_on.assertion_fields(), stranger))).status_code == 400
    await admin.put(path, json={"x509_cert": signer.certificate + stranger.certificate})
    for item in (signer, stranger):
        assert (await sign_on.post(signed(await sign_on.assertion_fields(), item))).status_code == 303
    await admin.put(path, json={"x509_cert": stranger.certificate})
    assert (await sign_on.post(signed(await sign_on.assertion_fields(), signer))).status_code == 400
    assert (await sign_on.post(signed(await sign_on.assertion_fields(), stranger))).status_code == 303


async def test_two_providers_of_one_organization_sign_in_the_same_people(
    sign_on: SignOn, platform: RunningPlatform, stranger: Signer
) -> None:
    other = await configured(platform, sign_on.tenant, sign_on.browser, stranger)
    for item in (sign_on, other):
        assert (await item.sign_in()).status_code == 303
    assert len(sign_on.sessions()) == 2


async def test_two_organizations_use_one_provider(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant, signer: Signer
) -> None:
    async with new_browser(platform) as browser:
        other = await configured(platform, other_tenant, browser, signer, entity_id=sign_on.entity_id)
        for item in (sign_on, other):
            assert (await item.sign_in()).status_code == 303
            assert len(item.sessions()) == 1


async def test_an_inactive_provider_cannot_finish_a_sign_in_or_end_a_session(sign_on: SignOn) -> None:
    assert (await sign_on.sign_in()).status_code == 303
    fields = await sign_on.assertion_fields()
    await sign_on.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json={"is_active": False})
    refused = await sign_on.post(signed(fields, sign_on.signer))
    assert (refused.status_code, refused.json()["reason"]) == (400, "unknown_issuer")
    assert len(sign_on.sessions()) == 1
    assert (await sign_on.browser.get("/login")).status_code in {200, 303}
    assert sign_on.platform.sql("SELECT revoked_at FROM sessions WHERE id = %s", [sign_on.sessions()[0]]) == [(None,)]


# the user -----------------------------------------------------------------------------------------------------------

ADDRESSES: dict[str, dict[str, Any]] = {
    "by its OID": {"email": None, "attributes": {MAIL_OID: ["{email}"]}},
    "by its claim": {
        "email": None,
        "attributes": {"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress": ["{email}"]},
    },
    "as the NameID": {"email": None, "name_id": "{email}", "name_id_format": saml.EMAIL_FORMAT},
    "in capitals": {"email": "{EMAIL}"},
}


@pytest.mark.parametrize("fields", ADDRESSES.values(), ids=ADDRESSES.keys())
async def test_the_address_is_read_from_the_usual_attributes(sign_on: SignOn, fields: dict[str, Any]) -> None:
    email = sign_on.tenant.user.email

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{email}", email).replace("{EMAIL}", email.upper())
        if isinstance(value, list):
            return [filled(item) for item in value]
        return {name: filled(item) for name, item in value.items()} if isinstance(value, dict) else value

    assert (await sign_on.sign_in(**filled(fields))).status_code == 303


async def test_a_mapped_attribute_is_the_only_one_that_is_read(
    platform: RunningPlatform, tenant: Tenant, browser: httpx2.AsyncClient, signer: Signer
) -> None:
    sign_on = await configured(platform, tenant, browser, signer, attribute_mapping={"email": "urn:acme:mail"})
    refused = await sign_on.sign_in(name_id=tenant.user.email, name_id_format=saml.EMAIL_FORMAT)
    assert (refused.status_code, refused.json()["reason"]) == (400, "missing_email")
    assert (await sign_on.sign_in(email=None, attributes={"urn:acme:mail": [tenant.user.email]})).status_code == 303


async def test_an_unknown_person_of_a_proven_domain_becomes_a_user_only_with_provisioning(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, sign_on.tenant, domain, jit=False)
    refused = await sign_on.sign_in(email=f"new@{domain}")
    assert (refused.status_code, refused.json()["reason"]) == (403, "not_admitted")
    assert account(platform, sign_on.tenant, f"new@{domain}") is None
    reasons = [event["reason"] for event in await platform.audit(sign_on.tenant, "saml.refused")]
    assert reasons == ["not_admitted"]


async def test_a_new_person_joins_if_the_domain_is_proven_and_open(sign_on: SignOn, platform: RunningPlatform) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    group = (await sign_on.tenant.admin.client.post("/api/admin/groups", json={"name": "everybody"})).json()
    prove(platform, sign_on.tenant, domain, jit=True, group=group["id"])
    fields = {"email": f"new@{domain}", "attributes": {"uid": ["new.one"], "role": ["admin"]}}
    assert (await sign_on.sign_in(**fields)).status_code == 303
    created = account(platform, sign_on.tenant, f"new@{domain}")
    assert created is not None
    assert created[1:] == ("user", "new.one", True, None)
    assert groups_of(platform, created[0]) == {"everybody"}
    (event,) = await platform.audit(sign_on.tenant, "user.registered")
    assert (event["resource_id"], event["details"]["idp_id"]) == (str(created[0]), sign_on.idp_id)
    # At the second sign-in the user exists.
    assert (await sign_on.sign_in(email=f"new@{domain}")).status_code == 303
    assert len(await platform.audit(sign_on.tenant, "user.registered")) == 1


async def test_two_concurrent_first_sign_ins_create_one_user(
    sign_on: SignOn, platform: RunningPlatform, signer: Signer
) -> None:
    """Two browsers sign in concurrently, with two providers of the organization."""
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, sign_on.tenant, domain, jit=True)
    async with new_browser(platform) as browser:
        other = await configured(platform, sign_on.tenant, browser, signer)
        ways = [sign_on, other, sign_on, other]
        roots = [
            signed(await way.assertion_fields(email=f"new@{domain}", attributes={"uid": ["new"]}), signer)
            for way in ways
        ]
        answers = await asyncio.gather(*(item.post(root) for item, root in zip(ways, roots, strict=True)))
    assert [answer.status_code for answer in answers] == [303] * 4, [answer.text for answer in answers]
    created = account(platform, sign_on.tenant, f"new@{domain}")
    assert created is not None
    assert created[2] == "new"
    assert platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [created[0]]) == [(4,)]
    assert len(await platform.audit(sign_on.tenant, "user.registered")) == 1


async def test_an_address_of_another_directory_user_creates_no_user(sign_on: SignOn, platform: RunningPlatform) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, sign_on.tenant, domain, jit=True)
    platform.sql("UPDATE users SET user_name = %s WHERE id = %s", [f"new@{domain}", sign_on.tenant.user.id])
    assert (await sign_on.sign_in(email=f"new@{domain}")).status_code == 403
    assert sign_on.sessions() == []


async def test_two_people_with_the_same_user_name_both_join(sign_on: SignOn, platform: RunningPlatform) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, sign_on.tenant, domain, jit=True)
    emails = [f"{name}@{domain}" for name in ("one", "two", "three")]
    roots = [
        signed(await sign_on.assertion_fields(email=email, attributes={"uid": ["same"]}), sign_on.signer)
        for email in emails
    ]
    answers = await asyncio.gather(*(sign_on.post(root) for root in roots))
    assert [answer.status_code for answer in answers] == [303] * 3, [answer.text for answer in answers]
    names = [(account(platform, sign_on.tenant, email) or ())[2] for email in emails]
    assert sorted(map(str, names)) == ["None", "None", "same"]


@pytest.mark.parametrize("name", ["not a name!", "ada@example.com", "{taken}"])
async def test_a_taken_user_name_is_omitted(sign_on: SignOn, platform: RunningPlatform, name: str) -> None:
    platform.sql("UPDATE users SET username = 'taken' WHERE id = %s", [sign_on.tenant.user.id])
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, sign_on.tenant, domain, jit=True)
    fields = {"email": f"new@{domain}", "attributes": {"uid": [name.format(taken="TAKEN")]}}
    assert (await sign_on.sign_in(**fields)).status_code == 303
    created = account(platform, sign_on.tenant, f"new@{domain}")
    assert created is not None
    assert created[2] is None


async def test_an_unproven_domain_verifies_no_address(sign_on: SignOn, platform: RunningPlatform) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, sign_on.tenant, domain, jit=True)
    platform.sql("UPDATE allowed_domains SET verified_at = NULL WHERE domain = %s", [domain])
    assert (await sign_on.sign_in(email=f"new@{domain}")).status_code == 303
    created = account(platform, sign_on.tenant, f"new@{domain}")
    assert created is not None
    assert created[3] is False


async def test_a_domain_proven_by_another_organization_permits_no_sign_in(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant
) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    prove(platform, other_tenant, domain, jit=True)
    person = await platform.new_person(other_tenant.id)
    platform.sql("UPDATE users SET email = %s WHERE id = %s", [f"theirs@{domain}", person.id])
    for email in (f"theirs@{domain}", f"new@{domain}"):
        assert (await sign_on.sign_in(email=email)).status_code == 403
        assert account(platform, sign_on.tenant, email) is None
    assert platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [person.id]) == [(1,)]


async def test_inactive_users_and_service_accounts_are_not_signed_in(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    platform.sql("UPDATE users SET is_active = false WHERE id = %s", [sign_on.tenant.user.id])
    platform.sql("UPDATE users SET kind = 'service' WHERE id = %s", [sign_on.tenant.auditor.id])
    for person in (sign_on.tenant.user, sign_on.tenant.auditor):
        refused = await sign_on.sign_in(email=person.email)
        assert (refused.status_code, "gatehouse_session" in refused.cookies) == (403, False)
    assert sign_on.sessions() == []


async def test_only_an_operators_provider_signs_in_operators(platform: RunningPlatform, signer: Signer) -> None:
    """Otherwise an administrator of their organization could become an operator."""
    operator = await platform.operator()
    (default,) = platform.sql("SELECT id FROM tenants WHERE slug = 'default'")[0]
    colleague = await platform.new_person(default, "admin")
    async with new_browser(platform) as browser:
        tenant = Tenant(default, "default", admin=colleague, auditor=colleague, user=operator)
        sign_on = await configured(platform, tenant, browser, signer)
        path = f"/api/admin/saml/idp/{sign_on.idp_id}"
        assert (await sign_on.sign_in()).status_code == 403
        await operator.client.put(path, json={"name": "Acme"})
        assert (await sign_on.sign_in()).status_code == 303
        await colleague.client.put(path, json={"name": "Other"})
        assert (await sign_on.sign_in()).status_code == 403
        await operator.client.delete(path)


# groups -------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def directory(sign_on: SignOn) -> dict[str, str]:
    """The ids of three groups by name. Two of the groups have a directory's id."""
    admin = sign_on.tenant.admin.client
    created = {}
    for name, external in (("red", "d-1"), ("blue", "d-2"), ("own", None)):
        body = {"name": name, "external_group_id": external}
        created[name] = (await admin.post("/api/admin/groups", json=body)).json()["id"]
    for name in ("blue", "own"):
        await admin.post(f"/api/admin/groups/{created[name]}/members", json={"user_id": str(sign_on.tenant.user.id)})
    return created


async def test_groups_follow_the_directory(sign_on: SignOn, directory: dict[str, str]) -> None:
    """The user joins red and leaves blue. The group without an external id is not changed."""
    fields = {"attributes": {"groups": ["d-1", "d-unknown", "own"]}}
    assert (await sign_on.sign_in(**fields)).status_code == 303
    user_id = sign_on.tenant.user.id
    assert groups_of(sign_on.platform, user_id) == {"red", "own"}
    live = {str(group) for group in sign_on.platform.host.replica.users[user_id].groups}
    assert live == {directory["red"], directory["own"]}
    (added,) = [
        e for e in await sign_on.platform.audit(sign_on.tenant, "group.member_added") if e["actor_id"] == str(user_id)
    ]
    assert added["resource_id"] == directory["red"]
    assert len(await sign_on.platform.audit(sign_on.tenant, "group.member_removed")) == 1


async def test_groups_with_the_same_external_id_have_the_same_members(
    sign_on: SignOn, directory: dict[str, str]
) -> None:
    body = {"name": "red too", "external_group_id": "d-1"}
    assert (await sign_on.tenant.admin.client.post("/api/admin/groups", json=body)).status_code == 201
    for groups, expected_names in ((["d-1"], {"red", "red too", "own"}), ([], {"own"})):
        assert (await sign_on.sign_in(attributes={"groups": groups})).status_code == 303
        assert groups_of(sign_on.platform, sign_on.tenant.user.id) == expected_names


async def test_a_response_without_groups_changes_no_membership(sign_on: SignOn, directory: dict[str, str]) -> None:
    assert (await sign_on.sign_in()).status_code == 303
    assert groups_of(sign_on.platform, sign_on.tenant.user.id) == {"blue", "own"}


async def test_an_empty_mapped_group_attribute_removes_all_memberships(
    sign_on: SignOn, directory: dict[str, str]
) -> None:
    mapping = {"attribute_mapping": {"groups": "urn:acme:groups"}}
    await sign_on.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json=mapping)
    assert (await sign_on.sign_in(attributes={"urn:acme:groups": ["d-2"]})).status_code == 303
    assert groups_of(sign_on.platform, sign_on.tenant.user.id) == {"blue", "own"}
    assert (await sign_on.sign_in()).status_code == 303
    assert groups_of(sign_on.platform, sign_on.tenant.user.id) == {"own"}


async def test_markup_in_a_name_id_is_text(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields(
        email=None, attributes={"email": [sign_on.tenant.user.email]}, name_id="a &amp; b &lt;c&gt;"
    )
    root = tree(response_text(fields))
    sign(assertion_of(root), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303
    assert sign_on.platform.sql("SELECT name_id FROM saml_sessions WHERE idp_id = %s", [sign_on.idp_id]) == [
        ("a & b <c>",)
    ]
