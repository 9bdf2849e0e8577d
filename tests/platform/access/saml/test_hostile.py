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

# to whom, about what, and when --------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "audience": ({"audience": "https://another.test/metadata"}, "invalid_signature"),
    "recipient": ({"recipient": "https://another.test/acs"}, "invalid_signature"),
    "recipient that contains ours": ({"recipient": f"https://another.test/?{BASE}/api/saml/acs"}, "invalid_signature"),
    "destination": ({"destination": "https://another.test/acs"}, "invalid_signature"),
    "destination that begins with ours": ({"destination": f"{BASE}/api/saml/acs.another.test"}, "invalid_signature"),
    "issuer of the message": ({"response_issuer": "https://another.test"}, "unknown_issuer"),
    "issuer of the assertion": (
        {"issuer": "https://another.test", "response_issuer": "right"},
        "unknown_issuer",
    ),
    "request of the assertion": ({"in_response_to": "_other", "response_in_response_to": "right"}, "invalid_signature"),
    "request of the message": ({"response_in_response_to": "_other"}, "assertion_expired"),
    "conditions over": ({"conditions_from": -3600, "conditions_until": -301}, "assertion_expired"),
    "conditions to come": ({"conditions_from": 310, "conditions_until": 3600}, "assertion_expired"),
    "confirmation over": ({"confirmed_until": -301}, "assertion_expired"),
    "session over": ({"session_until": -1}, "assertion_expired"),
    "issued in the future": ({"issued": 310}, "assertion_expired"),
    "no address": ({"email": None}, "missing_email"),
    "an address that is none": ({"email": "ada at example"}, "missing_email"),
}


@pytest.mark.parametrize(("changes", "reason"), WRONG.values(), ids=WRONG.keys())
async def test_an_assertion_that_is_not_for_here_and_now_signs_nobody_in(
    sign_on: SignOn, changes: dict[str, Any], reason: str
) -> None:
    right = await sign_on.assertion_fields()
    rights = {"response_in_response_to": right.in_response_to, "response_issuer": right.issuer}
    changes = {name: rights[name] if value == "right" else value for name, value in changes.items()}
    # A response to an unknown request is recorded in the chain of the only organization that knows the issuer.
    answer = await sign_on.post(signed(right.but(**changes), sign_on.signer))
    await assert_refused(sign_on, answer, reason)


_BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"

#: Changes of an assertion before it is signed: a pattern, its replacement,
#: and the reason.
LACKING: dict[str, tuple[str, str, str]] = {
    "about nobody": (r"<saml:Subject>.*</saml:Subject>", "", "invalid_signature"),
    "for whoever holds a key": (_BEARER, "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key", "invalid_signature"),
    "confirmed for ever": (r"(<saml:SubjectConfirmationData) NotOnOrAfter=\S+", r"\1", "invalid_signature"),
    "confirmed from later on": (
        r"(<saml:SubjectConfirmationData)",
        r'\1 NotBefore="9000-01-01T00:00:00Z"',
        "assertion_expired",
    ),
    "to everybody, for ever": (r"<saml:Conditions.*</saml:Conditions>", "", "invalid_signature"),
    "to everybody": (r"<saml:AudienceRestriction>.*</saml:AudienceRestriction>", "", "invalid_signature"),
    "to us and to others who must be us": (
        r"(</saml:AudienceRestriction>)",
        r"\1<saml:AudienceRestriction><saml:Audience>https://x.test</saml:Audience></saml:AudienceRestriction>",
        "invalid_signature",
    ),
    "of no sign-in": (r"<saml:AuthnStatement.*</saml:AuthnStatement>", "", "invalid_signature"),
    "with what SAML has not": (r"(<saml:AuthnStatement)", r"<saml:Trust/>\1", "invalid_signature"),
}


@pytest.mark.parametrize(("pattern", "instead", "reason"), LACKING.values(), ids=LACKING.keys())
async def test_an_assertion_that_leaves_the_question_open_signs_nobody_in(
    sign_on: SignOn, pattern: str, instead: str, reason: str
) -> None:
    text = response_text(await sign_on.assertion_fields())
    written = re.sub(pattern, instead, text)
    assert written != text
    root = tree(written)
    sign(assertion_of(root), sign_on.signer)
    await assert_refused(sign_on, await sign_on.post(saml.read_again(root)), reason)


@pytest.mark.parametrize(
    "changes", [{"conditions_until": -200}, {"confirmed_until": -200}, {"conditions_from": 200}, {"issued": 200}]
)
async def test_clocks_may_differ_by_five_minutes(sign_on: SignOn, changes: dict[str, float]) -> None:
    answer = await sign_on.sign_in(**{"conditions_from": -600, **changes})
    assert answer.status_code == 303, answer.text


async def test_the_last_moment_that_there_is_is_a_time(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields()
    text = response_text(fields)
    for moment in (saml.moment(fields.conditions_until), saml.moment(fields.confirmed_until)):
        text = text.replace(moment, "9999-12-31T23:59:59.9999999Z")
    root = tree(text)
    sign(assertion_of(root), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303


# once, from whom it was asked of, in the browser that asked ---------------------------------------------------------


async def test_an_answer_is_taken_once(sign_on: SignOn) -> None:
    root = signed(await sign_on.assertion_fields(), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303
    again = await sign_on.post(root)
    assert (again.status_code, again.json()["reason"]) == (400, "assertion_expired")
    assert len(sign_on.sessions()) == 1


async def test_an_assertion_is_taken_once_whatever_request_it_names(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields(assertion_id="_the-same")
    assert (await sign_on.post(signed(fields, sign_on.signer))).status_code == 303
    again = fields.but(in_response_to=await sign_on.begin())
    refused = await sign_on.post(signed(again, sign_on.signer))
    assert (refused.status_code, refused.json()["reason"]) == (400, "assertion_expired")
    assert len(sign_on.sessions()) == 1


async def test_of_two_answers_at_once_one_is_taken(sign_on: SignOn) -> None:
    fields = await sign_on.assertion_fields()
    answers = await asyncio.gather(*(sign_on.post(signed(fields, sign_on.signer)) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400, 400]
    assert len(sign_on.sessions()) == 1


async def test_an_answer_to_no_request_is_not_taken(sign_on: SignOn) -> None:
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


async def test_a_provider_that_may_begins_a_sign_in_once(open_sign_on: SignOn) -> None:
    fields = await open_sign_on.assertion_fields(in_response_to=None, assertion_id="_replayed")
    root = signed(fields, open_sign_on.signer)
    answers = await asyncio.gather(*(open_sign_on.post(root) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400]
    assert {answer.json()["reason"] for answer in answers if answer.status_code == 400} == {"assertion_expired"}
    assert len(open_sign_on.sessions()) == 1


async def test_a_provider_that_may_begin_sign_ins_is_held_to_all_other_rules(
    open_sign_on: SignOn, stranger: Signer
) -> None:
    fields = await open_sign_on.assertion_fields(in_response_to=None)
    for root, reason in (
        (signed(fields, stranger), "invalid_signature"),
        (signed(fields.but(audience="https://another.test"), open_sign_on.signer), "invalid_signature"),
        (signed(fields.but(recipient="https://another.test"), open_sign_on.signer), "invalid_signature"),
        (signed(fields.but(confirmed_until=-400), open_sign_on.signer), "assertion_expired"),
        (signed(fields.but(issuer="https://another.test"), open_sign_on.signer), "unknown_issuer"),
        # A response to a request, sent without the request's cookie.
        (signed(fields.but(response_in_response_to="_x"), open_sign_on.signer), "assertion_expired"),
    ):
        answer = await open_sign_on.post(root)
        assert (answer.status_code, answer.json()["reason"]) == (400, reason), answer.text
    assert open_sign_on.sessions() == []


async def test_of_two_organizations_with_one_provider_the_one_of_the_address_is_meant(
    open_sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant
) -> None:
    """An organization that configures another organization's provider can neither sign in its people nor keep them
    out."""
    config = {"entity_id": open_sign_on.entity_id, "allow_idp_initiated": True}
    twin = await configured(platform, other_tenant, open_sign_on.browser, open_sign_on.signer, **config)
    domain = f"{uuid4().hex[:10]}.test"
    fields = await open_sign_on.assertion_fields(in_response_to=None, email=f"ada@{domain}")
    unclear = await open_sign_on.post(signed(fields, open_sign_on.signer))
    assert (unclear.status_code, unclear.json()["reason"]) == (400, "unsolicited_response")
    prove(platform, open_sign_on.tenant, domain, jit=True)
    assert (await open_sign_on.post(signed(fields, open_sign_on.signer))).status_code == 303
    assert (len(open_sign_on.sessions()), twin.sessions()) == (1, [])


async def test_an_organizations_attribute_mapping_does_not_bring_it_anothers_people(
    open_sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant
) -> None:
    """An organization that has configured another organization's provider, and reads the address from another
    attribute."""
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
    unclear = await open_sign_on.post(signed(fields, open_sign_on.signer))
    assert (unclear.status_code, unclear.json()["reason"]) == (400, "unsolicited_response")
    assert twin.sessions() == []
    # If its mapping finds no address, the organization that can read one is chosen.
    platform.sql(
        'UPDATE saml_identity_providers SET attribute_mapping = \'{"email": "none"}\' WHERE id = %s', [twin.idp_id]
    )
    assert (await open_sign_on.post(signed(fields, open_sign_on.signer))).status_code == 303
    assert (len(open_sign_on.sessions()), twin.sessions()) == (1, [])


async def test_an_answer_to_a_request_of_long_ago_is_not_taken(sign_on: SignOn) -> None:
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


async def test_an_issuer_that_nobody_knows_is_in_the_operators_chain(sign_on: SignOn, stranger: Signer) -> None:
    fields = await sign_on.assertion_fields(issuer="https://nobody.test", in_response_to="_nothing")
    answer = await sign_on.post(signed(fields, stranger))
    await assert_refused(sign_on, answer, "unknown_issuer", in_default=True)


async def test_the_answer_to_one_organizations_request_signs_nobody_in_to_another(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant, stranger: Signer
) -> None:
    """The other organization has configured a provider with the same name and its own key, which names our user."""
    theirs = await configured(platform, other_tenant, sign_on.browser, stranger, entity_id=sign_on.entity_id)
    ours = await sign_on.post(signed(await sign_on.assertion_fields(), stranger))
    await assert_refused(sign_on, ours, "invalid_signature")
    taken_over = await theirs.post(signed(await theirs.assertion_fields(email=sign_on.tenant.admin.email), stranger))
    # The session belongs to a user of the other organization, because nobody has proven the domain.
    assert taken_over.status_code == 303
    assert platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.admin.id]) == [(1,)]
    assert sign_on.sessions() == []


async def test_an_answer_is_taken_in_the_browser_alone_in_which_the_sign_in_began(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    """Otherwise an attacker could let a victim's browser finish the attacker's sign-in, and observe the victim."""
    root = signed(await sign_on.assertion_fields(), sign_on.signer)
    async with new_browser(platform) as victim:
        await victim.get("/api/saml/login", params={"idp_id": sign_on.idp_id})
        await assert_refused(sign_on, await sign_on.post(root, browser=victim), "assertion_expired")
    async with new_browser(platform) as bare:
        await assert_refused(sign_on, await sign_on.post(root, browser=bare), "assertion_expired")
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
async def test_a_document_type_is_not_even_parsed(sign_on: SignOn, prologue: str) -> None:
    raw = etree.tostring(signed(await sign_on.assertion_fields(), sign_on.signer)).decode().replace(">ada<", ">&i;<")
    answer = await sign_on.post(saml.encoded((prologue + raw).encode()))
    await assert_refused(sign_on, answer, "invalid_signature", in_default=True)
    assert "document type" in answer.json()["detail"]


FORMS = {
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


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
async def test_what_is_no_response_is_refused(sign_on: SignOn, form: str) -> None:
    refused = await sign_on.post(form)
    assert (refused.status_code, refused.json()["reason"]) in {(400, "invalid_signature"), (400, "unknown_issuer")}
    assert sign_on.sessions() == []


@pytest.mark.parametrize("name_id", ["{victim}<!-- -->.attacker.test", "<!---->{victim}.attacker.test"])
async def test_a_comment_cuts_no_name_in_two(sign_on: SignOn, name_id: str) -> None:
    """The text is read without comments, as it is signed."""
    victim = sign_on.tenant.admin.email
    fields = await sign_on.assertion_fields(
        email=None, name_id=name_id.format(victim=victim), name_id_format=saml.EMAIL_FORMAT
    )
    answer = await sign_on.post(signed(fields, sign_on.signer))
    # The signature is valid, so the response is accepted, for the user that it names.
    assert answer.status_code == 303
    assert sign_on.platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.admin.id]) == [(1,)]


async def test_a_comment_that_was_put_in_later_changes_nobody(sign_on: SignOn) -> None:
    """The signature does not cover comments; the name that is read does not end at one either."""
    mine = f"{sign_on.tenant.user.email}.attacker.test"
    fields = await sign_on.assertion_fields(email=None, name_id=mine, name_id_format=saml.EMAIL_FORMAT)
    raw = etree.tostring(signed(fields, sign_on.signer)).decode()
    cut = raw.replace(mine, f"{sign_on.tenant.user.email}<!-- -->.attacker.test")
    answer = await sign_on.post(saml.encoded(cut.encode()))
    assert answer.status_code == 303, answer.text
    assert sign_on.platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.user.id]) == [(1,)]
