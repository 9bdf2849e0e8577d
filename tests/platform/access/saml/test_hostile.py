"""Answers that must open nobody's session: 400 with a reason, an audit event, and nothing else."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import httpx2
import pytest
import xmlsec
from lxml import etree
from tests.platform.access.saml.conftest import BASE, SignOn, configured, new_browser
from tests.support import saml
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import NS, Said, Signer, assertion_of, response_text, sign, signed, tree

from gatehouse.platform.change import DEFAULT_TENANT

DS = "{http://www.w3.org/2000/09/xmldsig#}"


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


# signature wrapping -------------------------------------------------------------------------------------------------


def _evil(element: Any, victim: str) -> Any:
    """A copy without signature, under another id, that names the victim."""
    evil = deepcopy(element)
    for signature in list(evil.iter(f"{DS}Signature")):
        signature.getparent().remove(signature)
    evil.set("ID", "_evil")
    if evil.tag.endswith("}Response"):
        assertion_of(evil).set("ID", "_evil_assertion")
    for value in evil.iter(f"{{{NS['saml']}}}AttributeValue"):
        value.text = victim
    return evil


def _of_response(root: Any, victim: str) -> tuple[Any, Any, Any]:
    """The evil response, the signature of the true one, and the true one without it."""
    evil = _evil(root, victim)
    true = deepcopy(root)
    signature = true.find("ds:Signature", NS)
    true.remove(signature)
    evil.find("saml:Issuer", NS).addnext(signature)
    return evil, signature, true


def xsw1(root: Any, victim: str) -> Any:
    """The true response inside its signature, in an evil response."""
    evil, signature, true = _of_response(root, victim)
    signature.append(true)
    return evil


def xsw2(root: Any, victim: str) -> Any:
    """The true response beside its signature, in an evil response."""
    evil, signature, true = _of_response(root, victim)
    signature.addprevious(true)
    return evil


def xsw3(root: Any, victim: str) -> Any:
    """An evil assertion in front of the true one."""
    true = assertion_of(root)
    true.addprevious(_evil(true, victim))
    return root


def xsw4(root: Any, victim: str) -> Any:
    """The true assertion inside an evil one."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    true.addprevious(evil)
    evil.append(true)
    return root


def xsw5(root: Any, victim: str) -> Any:
    """The signature in an evil assertion, the true one behind it."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    true.addprevious(evil)
    evil.find("saml:Issuer", NS).addnext(true.find("ds:Signature", NS))
    return root


def xsw6(root: Any, victim: str) -> Any:
    """The true assertion inside its signature, in an evil assertion."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    signature = true.find("ds:Signature", NS)
    evil.find("saml:Issuer", NS).addnext(signature)
    true.addprevious(evil)
    signature.append(true)
    return root


def xsw7(root: Any, victim: str) -> Any:
    """An evil assertion in the extensions, where the schema lets everything stand."""
    extensions = etree.SubElement(root, f"{{{NS['samlp']}}}Extensions")
    root.find("saml:Issuer", NS).addnext(extensions)
    extensions.append(_evil(assertion_of(root), victim))
    return root


def xsw8(root: Any, victim: str) -> Any:
    """The true assertion as an object of its signature, in an evil assertion."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    signature = true.find("ds:Signature", NS)
    evil.find("saml:Issuer", NS).addnext(signature)
    true.addprevious(evil)
    etree.SubElement(signature, f"{DS}Object").append(true)
    return root


def same_id(root: Any, victim: str) -> Any:
    """Two assertions of one id."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    evil.set("ID", true.get("ID"))
    true.addprevious(evil)
    return root


def moved_into_extensions(root: Any, victim: str) -> Any:
    """The true assertion out of the way, an evil one with its signature in its place."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    evil.find("saml:Issuer", NS).addnext(deepcopy(true.find("ds:Signature", NS)))
    extensions = etree.SubElement(root, f"{{{NS['samlp']}}}Extensions")
    root.find("saml:Issuer", NS).addnext(extensions)
    true.addprevious(evil)
    extensions.append(true)
    return root


WRAPPINGS = [xsw1, xsw2, xsw3, xsw4, xsw5, xsw6, xsw7, xsw8, same_id, moved_into_extensions]


@pytest.mark.parametrize("message_too", [False, True], ids=["assertion signed", "both signed"])
@pytest.mark.parametrize("wrap", WRAPPINGS)
async def test_a_wrapped_signature_signs_nobody_in(
    sign_on: SignOn, wrap: Callable[[Any, str], Any], message_too: bool
) -> None:
    if wrap in {xsw1, xsw2}:
        # These move the response's signature, so it must have one.
        root = tree(response_text(await sign_on.said()))
        if message_too:
            sign(assertion_of(root), sign_on.signer)
        sign(root, sign_on.signer)
        root = saml.read_again(root)
    else:
        root = signed(await sign_on.said(), sign_on.signer, message_too=message_too)
    await assert_refused(sign_on, await sign_on.post(wrap(root, sign_on.tenant.admin.email)), "invalid_signature")


# signatures ---------------------------------------------------------------------------------------------------------


def unsigned(said: Said, signer: Signer) -> Any:
    return tree(response_text(said))


def only_the_message(said: Said, signer: Signer) -> Any:
    root = tree(response_text(said))
    sign(root, signer)
    return root


def changed_after_signing(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    root.find(".//saml:AttributeValue", NS).text = "somebody@else.test"
    return root


def without_signature_value(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    root.find(".//ds:SignatureValue", NS).text = ""
    return root


def message_changed_after_signing(said: Said, signer: Signer) -> Any:
    root = signed(said, signer, message_too=True)
    root.set("Consent", "urn:oasis:names:tc:SAML:2.0:consent:prior")
    return root


def hmac_with_the_certificate(said: Said, signer: Signer) -> Any:
    root = tree(response_text(said))
    sign(assertion_of(root), signer, method=xmlsec.Transform.HMAC_SHA256, hmac_key=signer.certificate.encode())
    return root


def sha1_signature(said: Said, signer: Signer) -> Any:
    root = tree(response_text(said))
    sign(assertion_of(root), signer, method=xmlsec.Transform.RSA_SHA1)
    return root


def sha1_digest(said: Said, signer: Signer) -> Any:
    root = tree(response_text(said))
    sign(assertion_of(root), signer, digest=xmlsec.Transform.SHA1)
    return root


def over_the_whole_document(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    root.find(".//ds:Reference", NS).set("URI", "")
    return root


def two_references(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    reference = root.find(".//ds:Reference", NS)
    reference.addnext(deepcopy(reference))
    return root


def two_signatures(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    signature = root.find(".//ds:Signature", NS)
    signature.addnext(deepcopy(signature))
    return root


def many_transforms(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    transforms = root.find(".//ds:Transforms", NS)
    for _ in range(200):
        transforms.append(deepcopy(transforms[1]))
    return root


def _with_transform(root: Any, algorithm: str, content: str = "") -> Any:
    added = etree.fromstring(f'<ds:Transform xmlns:ds="{NS["ds"]}" Algorithm="{algorithm}">{content}</ds:Transform>')
    root.find(".//ds:Transforms", NS).append(added)
    return root


def xslt(said: Said, signer: Signer) -> Any:
    sheet = (
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/">'
        "<xsl:copy-of select=\"document('file:///etc/passwd')\"/></xsl:template></xsl:stylesheet>"
    )
    return _with_transform(signed(said, signer), "http://www.w3.org/TR/1999/REC-xslt-19991116", sheet)


def xpath(said: Said, signer: Signer) -> Any:
    only = "<ds:XPath>not(ancestor-or-self::Attribute)</ds:XPath>"
    return _with_transform(signed(said, signer), "http://www.w3.org/TR/1999/REC-xpath-19991116", only)


def no_enveloped_transform(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    transforms = root.find(".//ds:Transforms", NS)
    transforms.remove(transforms[0])
    return root


def inclusive_canonicalization(said: Said, signer: Signer) -> Any:
    root = signed(said, signer)
    inclusive = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
    root.find(".//ds:CanonicalizationMethod", NS).set("Algorithm", inclusive)
    return root


def xml_id(said: Said, signer: Signer) -> Any:
    root = tree(response_text(said))
    root.find(".//saml:Subject", NS).set("{http://www.w3.org/XML/1998/namespace}id", "x")
    sign(assertion_of(root), signer)
    return root


def no_success(said: Said, signer: Signer) -> Any:
    return signed(said.but(status="urn:oasis:names:tc:SAML:2.0:status:Responder"), signer)


def unknown_condition(said: Said, signer: Signer) -> Any:
    """Its type is known to the schema, so that it is valid, and could mean anything to whoever reads elements."""
    condition = (
        '<saml:Condition xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:type="saml:AudienceRestrictionType"><saml:Audience>https://another.test</saml:Audience></saml:Condition>'
    )
    return signed(said.but(extra_condition=condition), signer)


#: Each with words of the wall that it stops at.
SIGNATURES = [
    (unsigned, "not signed"), (only_the_message, "not signed"), (changed_after_signing, "does not fit"),
    (without_signature_value, "does not fit"), (message_changed_after_signing, "does not fit"),
    (hmac_with_the_certificate, "algorithm"), (sha1_signature, "algorithm"), (sha1_digest, "algorithm"),
    (over_the_whole_document, "not over"), (two_references, "one Reference"), (two_signatures, "where none belongs"),
    (many_transforms, "transforms"), (xslt, "transforms"), (xpath, "transforms"),
    (no_enveloped_transform, "transforms"), (inclusive_canonicalization, "canonicalization"), (xml_id, "id"),
    (no_success, "reports a failure"), (unknown_condition, "condition"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), SIGNATURES)
async def test_a_signature_that_is_not_plainly_good_signs_nobody_in(
    sign_on: SignOn, make: Callable[[Said, Signer], Any], words: str
) -> None:
    answer = await sign_on.post(make(await sign_on.said(), sign_on.signer))
    await assert_refused(sign_on, answer, "invalid_signature")
    assert words in answer.json()["detail"]


async def test_a_key_that_came_along_is_not_believed(sign_on: SignOn, stranger: Signer) -> None:
    """The message is signed well, and carries the certificate that says so."""
    answer = await sign_on.post(signed(await sign_on.said(), stranger, message_too=True))
    await assert_refused(sign_on, answer, "invalid_signature")


async def test_a_strangers_assertion_in_a_message_of_the_providers_is_not_believed(
    sign_on: SignOn, stranger: Signer
) -> None:
    root = signed(await sign_on.said(), stranger)
    sign(root, sign_on.signer)
    await assert_refused(sign_on, await sign_on.post(root), "invalid_signature")


async def test_an_encrypted_assertion_is_not_taken(sign_on: SignOn) -> None:
    root = signed(await sign_on.said(), sign_on.signer)
    true = assertion_of(root)
    encrypted = etree.fromstring(
        f'<saml:EncryptedAssertion xmlns:saml="{NS["saml"]}"><xenc:EncryptedData'
        ' xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"><xenc:CipherData><xenc:CipherValue>AAAA</xenc:CipherValue>'
        "</xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>"
    )
    root.replace(true, encrypted)
    await assert_refused(sign_on, await sign_on.post(root), "invalid_signature")


# to whom, about what, and when --------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "audience": ({"audience": "https://another.test/metadata"}, "invalid_signature"),
    "recipient": ({"recipient": "https://another.test/acs"}, "invalid_signature"),
    "recipient that contains ours": ({"recipient": f"https://another.test/?{BASE}/api/saml/acs"}, "invalid_signature"),
    "destination": ({"destination": "https://another.test/acs"}, "invalid_signature"),
    "destination that begins with ours": ({"destination": f"{BASE}/api/saml/acs.another.test"}, "invalid_signature"),
    "issuer of the message": ({"response_issuer": "https://another.test"}, "unknown_issuer"),
    "request of the assertion": ({"in_response_to": "_other", "response_in_response_to": "right"}, "invalid_signature"),
    "request of the message": ({"response_in_response_to": "_other"}, "assertion_expired"),
    "conditions over": ({"conditions_from": -3600, "conditions_until": -301}, "assertion_expired"),
    "conditions to come": ({"conditions_from": 310, "conditions_until": 3600}, "assertion_expired"),
    "confirmation over": ({"confirmed_until": -301}, "assertion_expired"),
    "session over": ({"session_until": -301}, "assertion_expired"),
    "issued in the future": ({"issued": 310}, "assertion_expired"),
    "no address": ({"email": None}, "missing_email"),
    "an address that is none": ({"email": "ada at example"}, "missing_email"),
}


@pytest.mark.parametrize(("changes", "reason"), WRONG.values(), ids=WRONG.keys())
async def test_an_assertion_that_is_not_for_here_and_now_signs_nobody_in(
    sign_on: SignOn, changes: dict[str, Any], reason: str
) -> None:
    right = await sign_on.said()
    if changes.get("response_in_response_to") == "right":
        changes = {**changes, "response_in_response_to": right.in_response_to}
    # An answer to a request that nobody knows is in the chain of the only organization that knows the issuer.
    answer = await sign_on.post(signed(right.but(**changes), sign_on.signer))
    await assert_refused(sign_on, answer, reason)


@pytest.mark.parametrize(
    "changes", [{"conditions_until": -200}, {"confirmed_until": -200}, {"conditions_from": 200}, {"issued": 200}]
)
async def test_clocks_may_differ_by_five_minutes(sign_on: SignOn, changes: dict[str, float]) -> None:
    answer = await sign_on.sign_in(**{"conditions_from": -600, **changes})
    assert answer.status_code == 303, answer.text


async def test_the_last_moment_that_there_is_is_a_time(sign_on: SignOn) -> None:
    said = await sign_on.said()
    text = response_text(said)
    for moment in (saml.moment(said.conditions_until), saml.moment(said.confirmed_until)):
        text = text.replace(moment, "9999-12-31T23:59:59.9999999Z")
    root = tree(text)
    sign(assertion_of(root), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303


# once, from whom it was asked of, in the browser that asked ---------------------------------------------------------


async def test_an_answer_is_taken_once(sign_on: SignOn) -> None:
    root = signed(await sign_on.said(), sign_on.signer)
    assert (await sign_on.post(root)).status_code == 303
    again = await sign_on.post(root)
    assert (again.status_code, again.json()["reason"]) == (400, "assertion_expired")
    assert len(sign_on.sessions()) == 1


async def test_an_assertion_is_taken_once_whatever_request_it_names(sign_on: SignOn) -> None:
    said = await sign_on.said(assertion_id="_the-same")
    assert (await sign_on.post(signed(said, sign_on.signer))).status_code == 303
    again = said.but(in_response_to=await sign_on.begin())
    refused = await sign_on.post(signed(again, sign_on.signer))
    assert (refused.status_code, refused.json()["reason"]) == (400, "assertion_expired")
    assert len(sign_on.sessions()) == 1


async def test_of_two_answers_at_once_one_is_taken(sign_on: SignOn) -> None:
    said = await sign_on.said()
    answers = await asyncio.gather(*(sign_on.post(signed(said, sign_on.signer)) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [303, 400, 400, 400, 400]
    assert len(sign_on.sessions()) == 1


async def test_an_answer_to_no_request_is_not_taken(sign_on: SignOn) -> None:
    said = await sign_on.said(in_response_to=None)
    await assert_refused(sign_on, await sign_on.post(signed(said, sign_on.signer)), "assertion_expired")


async def test_an_answer_to_a_request_of_long_ago_is_not_taken(sign_on: SignOn) -> None:
    said = await sign_on.said()
    sign_on.platform.sql("UPDATE saml_requests SET expires_at = now() WHERE id = %s", [said.in_response_to])
    await assert_refused(sign_on, await sign_on.post(signed(said, sign_on.signer)), "assertion_expired")


async def test_an_answer_from_another_provider_than_was_asked_is_not_taken(
    sign_on: SignOn, platform: RunningPlatform, stranger: Signer
) -> None:
    """Both are the organization's, and both sign well."""
    other = await configured(platform, sign_on.tenant, sign_on.browser, stranger)
    said = (await sign_on.said()).but(issuer=other.entity_id)
    await assert_refused(sign_on, await sign_on.post(signed(said, stranger)), "unknown_issuer")


async def test_an_issuer_that_nobody_knows_is_in_the_operators_chain(sign_on: SignOn, stranger: Signer) -> None:
    said = await sign_on.said(issuer="https://nobody.test", in_response_to="_nothing")
    answer = await sign_on.post(signed(said, stranger))
    await assert_refused(sign_on, answer, "unknown_issuer", in_default=True)


async def test_the_answer_to_one_organizations_request_signs_nobody_in_to_another(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant, stranger: Signer
) -> None:
    """The other has configured a provider of the same name, with a key of its own, and names our user."""
    theirs = await configured(platform, other_tenant, sign_on.browser, stranger, entity_id=sign_on.entity_id)
    ours = await sign_on.post(signed(await sign_on.said(), stranger))
    await assert_refused(sign_on, ours, "invalid_signature")
    taken_over = await theirs.post(signed(await theirs.said(email=sign_on.tenant.admin.email), stranger))
    assert taken_over.status_code == 403
    assert platform.sql("SELECT count(*) FROM sessions WHERE user_id = %s", [sign_on.tenant.admin.id]) == [(1,)]
    assert theirs.sessions() == sign_on.sessions() == []


async def test_an_answer_is_taken_in_the_browser_alone_in_which_the_sign_in_began(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    """Or somebody could have a victim's browser finish a sign-in of theirs, and watch what the victim does there."""
    root = signed(await sign_on.said(), sign_on.signer)
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
    raw = etree.tostring(signed(await sign_on.said(), sign_on.signer)).decode().replace(">ada<", ">&i;<")
    answer = await sign_on.post(saml.encoded((prologue + raw).encode()))
    await assert_refused(sign_on, answer, "invalid_signature", in_default=True)
    assert "root:" not in answer.text


FORMS = {
    "no base64": "%%%",
    "no XML": saml.encoded(b"hello"),
    "empty": saml.encoded(b"<a/>"),
    "another message": saml.encoded(saml.logout_request("x", BASE, name_id="x")),
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
    """What is signed without its comments is read without them: one text."""
    victim = sign_on.tenant.admin.email
    said = await sign_on.said(email=None, name_id=name_id.format(victim=victim), name_id_format=saml.EMAIL_FORMAT)
    answer = await sign_on.post(signed(said, sign_on.signer))
    # Believed, for it is well signed; and it names whom it names.
    assert (answer.status_code, answer.json()["detail"][:18]) == (403, "You have no active")
    assert sign_on.sessions() == []


async def test_a_comment_that_was_put_in_later_changes_nobody(sign_on: SignOn) -> None:
    """The signature does not cover comments; the name that is read does not end at one either."""
    mine = f"{sign_on.tenant.user.email}.attacker.test"
    said = await sign_on.said(email=None, name_id=mine, name_id_format=saml.EMAIL_FORMAT)
    raw = etree.tostring(signed(said, sign_on.signer)).decode()
    cut = raw.replace(mine, f"{sign_on.tenant.user.email}<!-- -->.attacker.test")
    answer = await sign_on.post(saml.encoded(cut.encode()))
    assert answer.status_code == 403, answer.text
    assert sign_on.sessions() == []
