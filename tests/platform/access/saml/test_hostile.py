"""SAML responses that must not open a session: 400 with a reason, an audit event, and no other effect."""

import asyncio
import re
from typing import Any
from uuid import uuid4

import pytest
from lxml import etree
from tests.platform.access.saml.conftest import BASE, SignOn, assert_refused, configured, new_browser, prove
from tests.support import saml
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import Signer, assertion_of, response_text, sign, signed, tree

# audience, recipient, request and times -----------------------------------------------------------------------------

INVALID_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "audience": ({"audience": "https://another.test/metadata"}, "invalid_signature"),
    "recipient": ({"recipient": "https://another.test/acs"}, "invalid_signature"),
    "recipient that contains our URL": (
        {"recipient": f"https://another.test/?{BASE}/api/saml/acs"},
        "invalid_signature",
    ),
    "destination": ({"destination": "https://another.test/acs"}, "invalid_signature"),
    "destination that begins with our URL": ({"destination": f"{BASE}/api/saml/acs.another.test"}, "invalid_signature"),
    "issuer of the message": ({"response_issuer": "https://another.test"}, "unknown_issuer"),
    "issuer of the assertion": (
        {"issuer": "https://another.test", "response_issuer": "valid"},
        "unknown_issuer",
    ),
    "request of the assertion": ({"in_response_to": "_other", "response_in_response_to": "valid"}, "invalid_signature"),
    "request of the message": ({"response_in_response_to": "_other"}, "assertion_expired"),
    "expired conditions": ({"conditions_from": -3600, "conditions_until": -301}, "assertion_expired"),
    "conditions that are not yet valid": ({"conditions_from": 310, "conditions_until": 3600}, "assertion_expired"),
    "expired confirmation": ({"confirmed_until": -301}, "assertion_expired"),
    "expired session": ({"session_until": -1}, "assertion_expired"),
    "issued in the future": ({"issued": 310}, "assertion_expired"),
    "no address": ({"email": None}, "missing_email"),
    "invalid address": ({"email": "ada at example"}, "missing_email"),
}


@pytest.mark.parametrize(("changes", "reason"), INVALID_FIELDS.values(), ids=INVALID_FIELDS.keys())
async def test_an_assertion_for_another_recipient_request_or_time_is_refused(
    sign_on: SignOn, changes: dict[str, Any], reason: str
) -> None:
    fields = await sign_on.assertion_fields()
    valid_values = {"response_in_response_to": fields.in_response_to, "response_issuer": fields.issuer}
    changes = {name: valid_values[name] if value == "valid" else value for name, value in changes.items()}
    # A response to an unknown request is recorded in the chain of the only organization that knows the issuer.
    answer = await sign_on.post(signed(fields.but(**changes), sign_on.signer))
    await assert_refused(sign_on, answer, reason)


_BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"

#: Changes of an assertion before it is signed: a pattern, its replacement, and the reason of the refusal.
INCOMPLETE: dict[str, tuple[str, str, str]] = {
    "no subject": (r"<saml:Subject>.*</saml:Subject>", "", "invalid_signature"),
    "holder of key": (_BEARER, "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key", "invalid_signature"),
    "confirmation without an end": (r"(<saml:SubjectConfirmationData) NotOnOrAfter=\S+", r"\1", "invalid_signature"),
    "confirmation that is not yet valid": (
        r"(<saml:SubjectConfirmationData)",
        r'\1 NotBefore="9000-01-01T00:00:00Z"',
        "assertion_expired",
    ),
    "no conditions": (r"<saml:Conditions.*</saml:Conditions>", "", "invalid_signature"),
    "no audience restriction": (r"<saml:AudienceRestriction>.*</saml:AudienceRestriction>", "", "invalid_signature"),
    "second audience restriction": (
        r"(</saml:AudienceRestriction>)",
        r"\1<saml:AudienceRestriction><saml:Audience>https://x.test</saml:Audience></saml:AudienceRestriction>",
        "invalid_signature",
    ),
    "no authentication statement": (r"<saml:AuthnStatement.*</saml:AuthnStatement>", "", "invalid_signature"),
    "element that SAML does not define": (r"(<saml:AuthnStatement)", r"<saml:Trust/>\1", "invalid_signature"),
}


@pytest.mark.parametrize(("pattern", "replacement", "reason"), INCOMPLETE.values(), ids=INCOMPLETE.keys())
async def test_an_incomplete_or_malformed_assertion_is_refused(
    sign_on: SignOn, pattern: str, replacement: str, reason: str
) -> None:
    text = response_text(await sign_on.assertion_fields())
    changed_text = re.sub(pattern, replacement, text)
    assert changed_text != text
    root = tree(changed_text)
    sign(assertion_of(root), sign_on.signer)
    await assert_refused(sign_on, await sign_on.post(saml.reparse(root)), reason)


@pytest.mark.parametrize(
    "changes", [{"conditions_until": -200}, {"confirmed_until": -200}, {"conditions_from": 200}, {"issued": 200}]
)
async def test_clocks_may_differ_by_five_minutes(sign_on: SignOn, changes: dict[str, float]) -> None:
    answer = await sign_on.sign_in(**{"conditions_from": -600, **changes})
    assert answer.status_code == 303, answer.text


async def test_the_latest_representable_time_is_accepted(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields()
    text = response_text(fields)
    for moment in (saml.moment(fields.conditions_until), saml.moment(fields.confirmed_until)):
        text = text.replace(moment, "9999-12-31T23:59:59.9999999Z")
    root = tree(text)
    sign(assertion_of(root), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303


# replay, provider and browser ---------------------------------------------------------------------------------------


async def test_a_response_is_accepted_once(sign_on: SignOn) -> None:
    root = signed(await sign_on.assertion_fields(), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303
    again = await sign_on.post(root)
    assert (again.status_code, again.json()["reason"]) == (400, "assertion_expired")
    assert len(sign_on.sessions()) == 1


async def test_an_assertion_is_accepted_once_even_for_another_request(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields(assertion_id="_the-same")
    assert (await sign_on.post(signed(fields, sign_on.signer))).status_code == 303
    again = fields.but(in_response_to=await sign_on.begin())
    refused = await sign_on.post(signed(again, sign_on.signer))
    assert (refused.status_code, refused.json()["reason"]) == (400, "assertion_expired")
    assert len(sign_on.sessions()) == 1


async def test_one_of_several_concurrent_responses_is_accepted(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields()
    answers = await asyncio.gather(*(sign_on.post(signed(fields, sign_on.signer)) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400, 400]
    assert len(sign_on.sessions()) == 1


async def test_a_response_to_an_unknown_request_is_refused(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields(in_response_to="_of_nobody")
    await assert_refused(sign_on, await sign_on.post(signed(fields, sign_on.signer)), "assertion_expired")


async def test_an_unsolicited_saml_response_is_refused(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields(in_response_to=None)
    await assert_refused(sign_on, await sign_on.post(signed(fields, sign_on.signer)), "unsolicited_response")


@pytest.fixture
async def open_sign_on(sign_on: SignOn) -> SignOn:
    """A provider that may start sign-ins."""
    path = f"/api/admin/saml/idp/{sign_on.idp_id}"
    changed = await sign_on.tenant.admin.client.put(path, json={"allow_idp_initiated": True})
    assert changed.json()["allow_idp_initiated"] is True, changed.text
    return sign_on


async def test_a_permitted_unsolicited_response_is_accepted_once(open_sign_on: SignOn) -> None:
    fields = await open_sign_on.assertion_fields(in_response_to=None, assertion_id="_replayed")
    root = signed(fields, open_sign_on.signer)
    answers = await asyncio.gather(*(open_sign_on.post(root) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400]
    assert {answer.json()["reason"] for answer in answers if answer.status_code == 400} == {"assertion_expired"}
    assert len(open_sign_on.sessions()) == 1


async def test_all_other_rules_apply_to_permitted_unsolicited_responses(open_sign_on: SignOn, stranger: Signer) -> None:
    fields = await open_sign_on.assertion_fields(in_response_to=None)
    for root, reason in (
        (signed(fields, stranger), "invalid_signature"),
        (signed(fields.but(audience="https://another.test"), open_sign_on.signer), "invalid_signature"),
        (signed(fields.but(recipient="https://another.test"), open_sign_on.signer), "invalid_signature"),
        (signed(fields.but(confirmed_until=-400), open_sign_on.signer), "assertion_expired"),
        (signed(fields.but(issuer="https://another.test"), open_sign_on.signer), "unknown_issuer"),
        # This response names a request, but the browser has no cookie of the request.
        (signed(fields.but(response_in_response_to="_x"), open_sign_on.signer), "assertion_expired"),
    ):
        answer = await open_sign_on.post(root)
        assert (answer.status_code, answer.json()["reason"]) == (400, reason), answer.text
    assert open_sign_on.sessions() == []


async def test_an_unsolicited_response_belongs_to_the_organization_that_has_proven_the_domain(
    open_sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant
) -> None:
    """An organization that configures another organization's provider can neither sign in that organization's users nor
    prevent their sign-ins."""
    config = {"entity_id": open_sign_on.entity_id, "allow_idp_initiated": True}
    twin = await configured(platform, other_tenant, open_sign_on.browser, open_sign_on.signer, **config)
    domain = f"{uuid4().hex[:10]}.test"
    fields = await open_sign_on.assertion_fields(in_response_to=None, email=f"ada@{domain}")
    ambiguous = await open_sign_on.post(signed(fields, open_sign_on.signer))
    assert (ambiguous.status_code, ambiguous.json()["reason"]) == (400, "unsolicited_response")
    prove(platform, open_sign_on.tenant, domain, jit=True)
    assert (await open_sign_on.post(signed(fields, open_sign_on.signer))).status_code == 303
    assert (len(open_sign_on.sessions()), twin.sessions()) == (1, [])


async def test_an_attribute_mapping_does_not_sign_in_users_of_another_organization(
    open_sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant
) -> None:
    """The other organization has configured the same provider, and reads the address from another attribute."""
    mapping = {"email": "contact"}
    config = {"entity_id": open_sign_on.entity_id, "allow_idp_initiated": True, "attribute_mapping": mapping}
    twin = await configured(platform, other_tenant, open_sign_on.browser, open_sign_on.signer, **config)
    path = "UPDATE saml_identity_providers SET created_at = created_at - interval '1 day' WHERE id = %s"
    platform.sql(path, [twin.idp_id])
    own, theirs = (f"{uuid4().hex[:10]}.test" for _ in range(2))
    prove(platform, open_sign_on.tenant, own, jit=True)
    prove(platform, other_tenant, theirs, jit=True)
    attributes = {"mail": [f"ada@{own}"], "contact": [f"ada@{theirs}"]}
    fields = await open_sign_on.assertion_fields(in_response_to=None, attributes=attributes)
    ambiguous = await open_sign_on.post(signed(fields, open_sign_on.signer))
    assert (ambiguous.status_code, ambiguous.json()["reason"]) == (400, "unsolicited_response")
    assert twin.sessions() == []
    # If its mapping finds no address, the organization that can read one is chosen.
    platform.sql(
        'UPDATE saml_identity_providers SET attribute_mapping = \'{"email": "none"}\' WHERE id = %s', [twin.idp_id]
    )
    assert (await open_sign_on.post(signed(fields, open_sign_on.signer))).status_code == 303
    assert (len(open_sign_on.sessions()), twin.sessions()) == (1, [])


async def test_a_response_to_an_expired_request_is_refused(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields()
    sign_on.platform.sql("UPDATE saml_requests SET expires_at = now() WHERE id = %s", [fields.in_response_to])
    await assert_refused(sign_on, await sign_on.post(signed(fields, sign_on.signer)), "assertion_expired")


async def test_a_saml_response_of_another_provider_is_refused(
    sign_on: SignOn, platform: RunningPlatform, stranger: Signer
) -> None:
    """Both providers belong to the organization, and both signatures are valid."""
    other = await configured(platform, sign_on.tenant, sign_on.browser, stranger)
    fields = (await sign_on.assertion_fields()).but(issuer=other.entity_id)
    await assert_refused(sign_on, await sign_on.post(signed(fields, stranger)), "unknown_issuer")


async def test_an_unknown_issuer_is_recorded_in_the_operators_chain(sign_on: SignOn, stranger: Signer) -> None:
    fields = await sign_on.assertion_fields(issuer="https://nobody.test", in_response_to="_nothing")
    answer = await sign_on.post(signed(fields, stranger))
    await assert_refused(sign_on, answer, "unknown_issuer", in_default=True)


async def test_a_provider_of_another_organization_cannot_sign_users_in(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant, stranger: Signer
) -> None:
    """The other organization has configured a provider with the same entity id and another key. The provider's response
    names our user."""
    theirs = await configured(platform, other_tenant, sign_on.browser, stranger, entity_id=sign_on.entity_id)
    ours = await sign_on.post(signed(await sign_on.assertion_fields(), stranger))
    await assert_refused(sign_on, ours, "invalid_signature")
    taken_over = await theirs.post(signed(await theirs.assertion_fields(email=sign_on.tenant.admin.email), stranger))
    # The session belongs to a user of the other organization, because nobody has verified the domain.
    assert taken_over.status_code == 303
    assert platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.admin.id]) == [(1,)]
    assert sign_on.sessions() == []


async def test_a_response_is_accepted_only_in_the_browser_that_started_the_sign_in(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    """Otherwise an attacker could let a victim's browser finish the attacker's sign-in, and observe the victim."""
    root = signed(await sign_on.assertion_fields(), sign_on.signer)
    async with new_browser(platform) as victim:
        await victim.get("/api/saml/login", params={"idp_id": sign_on.idp_id})
        await assert_refused(sign_on, await sign_on.post(root, browser=victim), "assertion_expired")
    async with new_browser(platform) as new:
        await assert_refused(sign_on, await sign_on.post(root, browser=new), "assertion_expired")
    assert (await sign_on.post(root)).status_code == 303


# XML ----------------------------------------------------------------------------------------------------------------

BOMB = "<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
PROLOGUES = {
    "external entity": '<!DOCTYPE r [<!ENTITY i SYSTEM "file:///etc/passwd">]>',
    "entity bomb": BOMB + "]>",
    "external document type": '<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd">',
    "parameter entity": '<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x">%p;]>',
}


@pytest.mark.parametrize("prologue", PROLOGUES.values(), ids=PROLOGUES.keys())
async def test_a_document_type_is_refused_before_parsing(sign_on: SignOn, prologue: str) -> None:
    raw = etree.tostring(signed(await sign_on.assertion_fields(), sign_on.signer)).decode().replace(">ada<", ">&i;<")
    answer = await sign_on.post(saml.encoded((prologue + raw).encode()))
    await assert_refused(sign_on, answer, "invalid_signature", in_default=True)
    assert "document type" in answer.json()["detail"]


MALFORMED = {
    "no base64": "%%%",
    "no XML": saml.encoded(b"hello"),
    "empty": saml.encoded(b"<a/>"),
    "another message": saml.encoded(saml.logout_request("x", BASE, name_id="x")),
    "UTF-16 without a mark": saml.encoded("<!DOCTYPE a><a/>".encode("utf-16-le")),
    "UTF-16, big end first, without a mark": saml.encoded("<!DOCTYPE a><a/>".encode("utf-16-be")),
    "padded UTF-7": saml.encoded(b'<?xml version="1.0"' + b" " * 300 + b'encoding="UTF-7"?>+ADwAIQ-DOCTYPE a+AD4-<a/>'),
    "UTF-7 as a second declaration": saml.encoded(b'<?xml version="1.0" utf-8="" encoding="UTF-7"?><a/>'),
    "text in front": saml.encoded(b'x<?xml version="1.0" encoding="UTF-7"?><a/>'),
    "UTF-16": saml.encoded("<!DOCTYPE a><a/>".encode("utf-16")),
    "UTF-7": saml.encoded(b'<?xml version="1.0" encoding="UTF-7"?><a/>'),
    "deep": saml.encoded(b"<a>" * 20_000),
    "NUL": saml.encoded(b"<a>\0</a>"),
    "large": saml.encoded(b"<a>" + b" " * 300_000 + b"</a>"),
}


@pytest.mark.parametrize("form", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_response_is_refused(sign_on: SignOn, form: str) -> None:
    refused = await sign_on.post(form)
    assert (refused.status_code, refused.json()["reason"]) in {(400, "invalid_signature"), (400, "unknown_issuer")}
    assert sign_on.sessions() == []


@pytest.mark.parametrize("name_id", ["{victim}<!-- -->.attacker.test", "<!---->{victim}.attacker.test"])
async def test_a_comment_does_not_split_a_name(sign_on: SignOn, name_id: str) -> None:
    """The name is read without comments. The signature covers the name in this form."""
    victim = sign_on.tenant.admin.email
    fields = await sign_on.assertion_fields(
        email=None, name_id=name_id.format(victim=victim), name_id_format=saml.EMAIL_FORMAT
    )
    answer = await sign_on.post(signed(fields, sign_on.signer))
    # The signature is valid, so the response is accepted, for the user that it names.
    assert answer.status_code == 303
    assert sign_on.platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.admin.id]) == [(1,)]


async def test_a_comment_added_after_signing_does_not_change_the_user(sign_on: SignOn) -> None:
    """The signature does not cover comments, and the complete name is read without them."""
    mine = f"{sign_on.tenant.user.email}.attacker.test"
    fields = await sign_on.assertion_fields(email=None, name_id=mine, name_id_format=saml.EMAIL_FORMAT)
    raw = etree.tostring(signed(fields, sign_on.signer)).decode()
    cut = raw.replace(mine, f"{sign_on.tenant.user.email}<!-- -->.attacker.test")
    answer = await sign_on.post(saml.encoded(cut.encode()))
    assert answer.status_code == 303, answer.text
    assert sign_on.platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.user.id]) == [(1,)]
