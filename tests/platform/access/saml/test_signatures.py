"""Signatures that must not open a session: moved to another element, or not valid."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import xmlsec
from lxml import etree
from onelogin.saml2.response import OneLogin_Saml2_Response
from structlog.testing import capture_logs
from tests.platform.access.saml.conftest import SignOn, assert_refused
from tests.support import saml
from tests.support.saml import NS, AssertionFields, Signer, assertion_of, response_text, sign, signed, tree

from gatehouse.platform.access.saml.protocol import trust

DS = "{http://www.w3.org/2000/09/xmldsig#}"


# signature wrapping -------------------------------------------------------------------------------------------------


def _evil(element: Any, victim: str) -> Any:
    """Return a copy without signature and with another id that names the victim."""
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
    """Return the forged response, the signature of the true response, and the true response without it."""
    evil = _evil(root, victim)
    true = deepcopy(root)
    signature = true.find("ds:Signature", NS)
    true.remove(signature)
    evil.find("saml:Issuer", NS).addnext(signature)
    return evil, signature, true


def xsw1(root: Any, victim: str) -> Any:
    """The true response inside its signature, in a forged response."""
    evil, signature, true = _of_response(root, victim)
    signature.append(true)
    return evil


def xsw2(root: Any, victim: str) -> Any:
    """The true response next to its signature, in a forged response."""
    evil, signature, true = _of_response(root, victim)
    signature.addprevious(true)
    return evil


def xsw3(root: Any, victim: str) -> Any:
    """A forged assertion before the true one."""
    true = assertion_of(root)
    true.addprevious(_evil(true, victim))
    return root


def xsw4(root: Any, victim: str) -> Any:
    """The true assertion inside a forged one."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    true.addprevious(evil)
    evil.append(true)
    return root


def xsw5(root: Any, victim: str) -> Any:
    """The signature in a forged assertion, with the true assertion after it."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    true.addprevious(evil)
    evil.find("saml:Issuer", NS).addnext(true.find("ds:Signature", NS))
    return root


def xsw6(root: Any, victim: str) -> Any:
    """The true assertion inside its signature, in a forged assertion."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    signature = true.find("ds:Signature", NS)
    evil.find("saml:Issuer", NS).addnext(signature)
    true.addprevious(evil)
    signature.append(true)
    return root


def xsw7(root: Any, victim: str) -> Any:
    """A forged assertion in the extensions, where the schema allows any element."""
    extensions = etree.SubElement(root, f"{{{NS['samlp']}}}Extensions")
    root.find("saml:Issuer", NS).addnext(extensions)
    extensions.append(_evil(assertion_of(root), victim))
    return root


def xsw8(root: Any, victim: str) -> Any:
    """The true assertion as an object of its signature, in a forged assertion."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    signature = true.find("ds:Signature", NS)
    evil.find("saml:Issuer", NS).addnext(signature)
    true.addprevious(evil)
    etree.SubElement(signature, f"{DS}Object").append(true)
    return root


def same_id(root: Any, victim: str) -> Any:
    """Two assertions with the same id."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    evil.set("ID", true.get("ID"))
    true.addprevious(evil)
    return root


def moved_into_extensions(root: Any, victim: str) -> Any:
    """The true assertion is moved, and replaced by a forged one with its signature."""
    true = assertion_of(root)
    evil = _evil(true, victim)
    evil.find("saml:Issuer", NS).addnext(deepcopy(true.find("ds:Signature", NS)))
    extensions = etree.SubElement(root, f"{{{NS['samlp']}}}Extensions")
    root.find("saml:Issuer", NS).addnext(extensions)
    true.addprevious(evil)
    extensions.append(true)
    return root


WRAPPINGS = [xsw1, xsw2, xsw3, xsw4, xsw5, xsw6, xsw7, xsw8, same_id, moved_into_extensions]


def both_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    pass


def shape_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the library accept every signature."""
    monkeypatch.setattr(OneLogin_Saml2_Response, "is_valid", lambda *_, **__: True)


def signature_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the platform's own checks off, and read the first assertion."""
    monkeypatch.setattr(trust, "_check_shape", lambda root: next(root.iter(f"{{{NS['saml']}}}Assertion")))


@pytest.mark.parametrize("checks", [both_checks, shape_alone, signature_alone])
@pytest.mark.parametrize("message_too", [False, True], ids=["assertion signed", "both signed"])
@pytest.mark.parametrize("wrap", WRAPPINGS)
async def test_a_wrapped_signature_is_refused(
    sign_on: SignOn,
    monkeypatch: pytest.MonkeyPatch,
    wrap: Callable[[Any, str], Any],
    message_too: bool,
    checks: Callable[[pytest.MonkeyPatch], None],
) -> None:
    """Each of the two checks refuses each form, so an error in one of them is not enough for an attack."""
    checks(monkeypatch)
    if wrap in {xsw1, xsw2}:
        # These move the response's signature, so it must have one.
        root = tree(response_text(await sign_on.assertion_fields()))
        if message_too:
            sign(assertion_of(root), sign_on.signer)
        sign(root, sign_on.signer)
        root = saml.reparse(root)
    else:
        root = signed(await sign_on.assertion_fields(), sign_on.signer, message_too=message_too)
    await assert_refused(sign_on, await sign_on.post(wrap(root, sign_on.tenant.admin.email)), "invalid_signature")


# signatures ---------------------------------------------------------------------------------------------------------


def unsigned(fields: AssertionFields, signer: Signer) -> Any:
    return tree(response_text(fields))


def only_the_message(fields: AssertionFields, signer: Signer) -> Any:
    root = tree(response_text(fields))
    sign(root, signer)
    return root


def changed_after_signing(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    root.find(".//saml:AttributeValue", NS).text = "somebody@else.test"
    return root


def without_signature_value(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    root.find(".//ds:SignatureValue", NS).text = ""
    return root


def message_changed_after_signing(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer, message_too=True)
    root.set("Consent", "urn:oasis:names:tc:SAML:2.0:consent:prior")
    return root


def hmac_with_the_certificate(fields: AssertionFields, signer: Signer) -> Any:
    root = tree(response_text(fields))
    sign(assertion_of(root), signer, method=xmlsec.Transform.HMAC_SHA256, hmac_key=signer.certificate.encode())
    return root


def sha1_signature(fields: AssertionFields, signer: Signer) -> Any:
    root = tree(response_text(fields))
    sign(assertion_of(root), signer, method=xmlsec.Transform.RSA_SHA1)
    return root


def sha1_digest(fields: AssertionFields, signer: Signer) -> Any:
    root = tree(response_text(fields))
    sign(assertion_of(root), signer, digest=xmlsec.Transform.SHA1)
    return root


def over_the_whole_document(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    root.find(".//ds:Reference", NS).set("URI", "")
    return root


def two_references(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    reference = root.find(".//ds:Reference", NS)
    reference.addnext(deepcopy(reference))
    return root


def two_signatures(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    signature = root.find(".//ds:Signature", NS)
    signature.addnext(deepcopy(signature))
    return root


def two_assertions(fields: AssertionFields, signer: Signer) -> Any:
    """Both signatures are valid."""
    root, other = signed(fields, signer), signed(fields, signer)
    assertion_of(root).addnext(assertion_of(other))
    return root


def additional_element_in_the_signature(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    etree.SubElement(root.find(".//ds:Signature", NS), f"{DS}Object").text = "not signed"
    return root


def many_transforms(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    transforms = root.find(".//ds:Transforms", NS)
    for _ in range(200):
        transforms.append(deepcopy(transforms[1]))
    return root


def _with_transform(root: Any, algorithm: str, content: str = "") -> Any:
    added = etree.fromstring(f'<ds:Transform xmlns:ds="{NS["ds"]}" Algorithm="{algorithm}">{content}</ds:Transform>')
    root.find(".//ds:Transforms", NS).append(added)
    return root


def xslt(fields: AssertionFields, signer: Signer) -> Any:
    sheet = (
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/">'
        "<xsl:copy-of select=\"document('file:///etc/passwd')\"/></xsl:template></xsl:stylesheet>"
    )
    return _with_transform(signed(fields, signer), "http://www.w3.org/TR/1999/REC-xslt-19991116", sheet)


def xpath(fields: AssertionFields, signer: Signer) -> Any:
    only = "<ds:XPath>not(ancestor-or-self::Attribute)</ds:XPath>"
    return _with_transform(signed(fields, signer), "http://www.w3.org/TR/1999/REC-xpath-19991116", only)


def no_enveloped_transform(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    transforms = root.find(".//ds:Transforms", NS)
    transforms.remove(transforms[0])
    return root


def inclusive_canonicalization(fields: AssertionFields, signer: Signer) -> Any:
    root = signed(fields, signer)
    inclusive = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
    root.find(".//ds:CanonicalizationMethod", NS).set("Algorithm", inclusive)
    return root


def xml_id(fields: AssertionFields, signer: Signer) -> Any:
    root = tree(response_text(fields))
    root.find(".//saml:Subject", NS).set("{http://www.w3.org/XML/1998/namespace}id", "x")
    sign(assertion_of(root), signer)
    return root


def status_without_success(fields: AssertionFields, signer: Signer) -> Any:
    return signed(fields.but(status="urn:oasis:names:tc:SAML:2.0:status:Responder"), signer)


def unknown_condition(fields: AssertionFields, signer: Signer) -> Any:
    """The schema defines the type of the condition, so the response is valid, although readers could interpret the
    condition in any way."""
    condition = (
        '<saml:Condition xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:type="saml:AudienceRestrictionType"><saml:Audience>https://another.test</saml:Audience></saml:Condition>'
    )
    return signed(fields.but(extra_condition=condition), signer)


#: Functions that make a response, each with a part of the expected error.
SIGNATURES = [
    (unsigned, "not signed"), (only_the_message, "not signed"), (changed_after_signing, "does not match"),
    (without_signature_value, "does not match"), (message_changed_after_signing, "does not match"),
    (hmac_with_the_certificate, "algorithm"), (sha1_signature, "algorithm"), (sha1_digest, "algorithm"),
    (over_the_whole_document, "does not cover"), (two_references, "one Reference"),
    (two_signatures, "must not have one"),
    (two_assertions, "exactly one assertion"), (additional_element_in_the_signature, "additional elements"),
    (many_transforms, "transforms"), (xslt, "transforms"), (xpath, "transforms"),
    (no_enveloped_transform, "transforms"), (inclusive_canonicalization, "canonicalization"), (xml_id, "id"),
    (status_without_success, "reports a failure"), (unknown_condition, "condition"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), SIGNATURES)
async def test_an_invalid_or_unusual_signature_is_refused(
    sign_on: SignOn, make: Callable[[AssertionFields, Signer], Any], words: str
) -> None:
    answer = await sign_on.post(make(await sign_on.assertion_fields(), sign_on.signer))
    await assert_refused(sign_on, answer, "invalid_signature")
    assert words in answer.json()["detail"]


async def test_a_certificate_in_the_message_is_not_trusted(sign_on: SignOn, stranger: Signer) -> None:
    """The message has a valid signature, and contains the certificate for it."""
    answer = await sign_on.post(signed(await sign_on.assertion_fields(), stranger, message_too=True))
    await assert_refused(sign_on, answer, "invalid_signature")


async def test_an_assertion_signed_with_another_key_in_a_signed_message_is_refused(
    sign_on: SignOn, stranger: Signer
) -> None:
    root = signed(await sign_on.assertion_fields(), stranger)
    sign(root, sign_on.signer)
    await assert_refused(sign_on, await sign_on.post(root), "invalid_signature")


async def test_an_encrypted_assertion_is_refused(sign_on: SignOn) -> None:
    root = signed(await sign_on.assertion_fields(), sign_on.signer)
    true = assertion_of(root)
    encrypted = etree.fromstring(
        f'<saml:EncryptedAssertion xmlns:saml="{NS["saml"]}"><xenc:EncryptedData'
        ' xmlns:xenc="http://www.w3.org/2001/04/xmlenc#"><xenc:CipherData><xenc:CipherValue>AAAA</xenc:CipherValue>'
        "</xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>"
    )
    root.replace(true, encrypted)
    with capture_logs() as logs:
        answer = await sign_on.post(root)
    await assert_refused(sign_on, answer, "invalid_signature")
    assert [entry["log_level"] for entry in logs if entry["event"] == "saml.answer_not_read"] == ["info"]


async def test_an_error_of_the_library_is_logged_and_the_response_refused(
    sign_on: SignOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*args: Any, **kwargs: Any) -> bool:
        raise RuntimeError("the library's own fault")

    monkeypatch.setattr(OneLogin_Saml2_Response, "is_valid", fault)
    with capture_logs() as logs:
        answer = await sign_on.sign_in()
    await assert_refused(sign_on, answer, "invalid_signature")
    (entry,) = [entry for entry in logs if entry["event"] == "saml.signature_not_judged"]
    assert entry["log_level"] == "error"
