"""From a browser's form to an assertion that is signed: what is parsed, what shape it must have, whose signature it is.

Two judges, and both must agree. python3-saml verifies the signature and that it is over the assertion that it would
read. Before it, the shape is held to the one thing that identity providers send: a response with one assertion, each
signature a child of what it signs, over exactly that by its id, with the two transforms of SAML and algorithms that are
still good. Every trick with XML signatures needs more than that shape. What was verified is the tree that is read.
"""

import binascii
import codecs
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature as BadSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from onelogin.saml2.errors import OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError
from onelogin.saml2.response import OneLogin_Saml2_Response
from onelogin.saml2.settings import OneLogin_Saml2_Settings
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML

from gatehouse.platform.access.saml import certificates
from gatehouse.platform.access.saml.errors import InvalidSignature
from gatehouse.platform.access.saml.messages import ASSERTION, NAMESPACES, PROTOCOL, SIGNATURE

log = structlog.get_logger(__name__)

MAX_BYTES: Final = 256 * 1024
_MAX_BASE64_CHARS: Final = MAX_BYTES * 4 // 3 + 4096

_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
_XMLENC: Final = "http://www.w3.org/2001/04/xmlenc#"
_EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
_ENVELOPED: Final = f"{SIGNATURE}enveloped-signature"

_HASHES: Final[dict[str, type[hashes.SHA256 | hashes.SHA384 | hashes.SHA512]]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_SIGNATURES: Final = {f"{_MORE}{kind}-sha{size}" for kind in ("rsa", "ecdsa") for size in _HASHES}
_DIGESTS: Final = {f"{_XMLENC}sha256", f"{_MORE}sha384", f"{_XMLENC}sha512"}
_TRANSFORMS: Final = ([_ENVELOPED, _EXCLUSIVE], [_ENVELOPED])

_SCHEMA: Final = "saml-schema-protocol-2.0.xsd"

_DECLARATION: Final = re.compile(
    rb"""<\?xml\s{1,9}version\s?=\s?["']1\.[0-9]["'](\s{1,9}encoding\s?=\s?["']utf-?8["'])?"""
    rb"""(\s{1,9}standalone\s?=\s?["'](yes|no)["'])?\s{0,9}\?>""",
    re.IGNORECASE,
)

#: The library wants addresses of both sides. It is asked about signatures alone, so these are nobody's.
_NOWHERE: Final = "https://unused.invalid/"

Element = Any


def decoded(text: str) -> bytes:
    """Of a form's field. Raises `InvalidSignature`."""
    if len(text) > _MAX_BASE64_CHARS:
        raise InvalidSignature("The answer is too large.")
    try:
        raw = b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSignature("The answer is not base64.") from None
    if len(raw) > MAX_BYTES:
        raise InvalidSignature("The answer is too large.")
    return raw


def inflated(text: str) -> bytes:
    """Of a field of an address, which is compressed too: no more comes out than may. Raises `InvalidSignature`."""
    stream = zlib.decompressobj(-15)
    try:
        raw = stream.decompress(decoded(text), MAX_BYTES + 1)
    except zlib.error:
        raise InvalidSignature("The message is not compressed as it should be.") from None
    if len(raw) > MAX_BYTES or not stream.eof:
        raise InvalidSignature("The message is too large, or cut short.")
    return raw


def parsed(raw: bytes) -> Element:
    """The root. Comments are dropped in parsing, so no text is cut in two by one. Raises `InvalidSignature`."""
    _without_doctype(raw)
    try:
        return OneLogin_Saml2_XML.to_etree(raw)
    except Exception:  # of every kind: a hostile document has many ways to fail
        raise InvalidSignature("The message is not XML.") from None


def valid(root: Element, kind: str) -> Element:
    """The message, if it is of this kind and follows SAML's schema. Raises `InvalidSignature`."""
    if root.tag != f"{{{PROTOCOL}}}{kind}" or not _by_schema(root):
        raise InvalidSignature(f"The message is not a {kind} by SAML's schema.")
    return root


class Response(msgspec.Struct, frozen=True):
    """A response whose assertion's signature was verified."""

    root: Element
    assertion: Element


def believed(raw: bytes, issuer: str, trusted: Sequence[x509.Certificate]) -> Response:
    """The response, if its assertion is signed by one of these certificates. Raises `InvalidSignature`."""
    _without_doctype(raw)
    try:
        judged = OneLogin_Saml2_Response(_settings(issuer, trusted), b64encode(raw))
    except Exception as error:  # an encrypted assertion ends here too
        log.info("saml.answer_not_read", error=type(error).__name__)
        raise InvalidSignature("The answer cannot be read. Encrypted assertions are not taken.") from None
    root = judged.document
    if root.find("saml:Assertion", NAMESPACES) is None:
        # As a rule a failure that the provider reports: nobody is assigned, or somebody gave up.
        raise InvalidSignature("The identity provider signed nobody in.")
    assertion = _well_shaped(root)
    valid(root, "Response")
    try:
        good = judged.is_valid({}, raise_exceptions=True)
    except (OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError):
        good = False
    except Exception:
        # The library's own faults look like a wrong signature to the person; the operator has to see them.
        log.exception("saml.signature_not_judged")
        good = False
    if not good:
        raise InvalidSignature("The signature does not fit, or the provider reports a failure.")
    return Response(root, assertion)


def verify_query(query: str, parameter: str, trusted: Sequence[x509.Certificate]) -> None:
    """The signature over an address, of exactly the octets that came (SAML Bindings, 3.4.4.1).

    Raises `InvalidSignature`.
    """
    fields: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name in fields:
            raise InvalidSignature("A parameter stands in the address twice.")
        fields[name] = value
    algorithm = unquote(fields.get("SigAlg", ""))
    if algorithm not in _SIGNATURES or "Signature" not in fields:
        raise InvalidSignature("The message is not signed, or by an algorithm that is not taken.")
    signed = "&".join(f"{name}={fields[name]}" for name in (parameter, "RelayState", "SigAlg") if name in fields)
    try:
        signature = b64decode(unquote(fields["Signature"]), validate=True)
        octets = signed.encode("ascii")
    except ValueError:
        raise InvalidSignature("The signature cannot be read.") from None
    if not any(_fits(certificates.key_of(each), signature, octets, algorithm) for each in trusted):
        raise InvalidSignature("The signature does not fit.")


def one(parent: Element, path: str) -> Element | None:
    """The element at this path, or None; of several nobody can say which was meant. Raises `InvalidSignature`."""
    found = parent.findall(path, NAMESPACES)
    if len(found) > 1:
        raise InvalidSignature(f"The message has more than one {path}.")
    return found[0] if found else None


def text_of(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _by_schema(root: Element) -> bool:
    return not isinstance(OneLogin_Saml2_XML.validate_xml(root, _SCHEMA), str)


def _without_doctype(raw: bytes) -> None:
    """No parser sees a document type: entities, remote files and their costs begin there. Only UTF-8, so that nothing
    is hidden by another encoding: neither by NUL bytes, nor by the XML declaration, of which a few spellings are taken.
    """
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidSignature("The message is not UTF-8.") from None
    start = raw.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")
    if b"\0" in raw or not start.startswith(b"<"):
        raise InvalidSignature("The message is not UTF-8.")
    if start[:5].lower() == b"<?xml" and not start[5:6].isalnum() and _DECLARATION.match(start) is None:
        raise InvalidSignature("The message is not UTF-8.")
    if b"<!DOCTYPE" in raw or b"<!ENTITY" in raw or b"<?xml-stylesheet" in raw:
        raise InvalidSignature("The message has a document type.")


def _well_shaped(root: Element) -> Element:
    """The one assertion. Raises `InvalidSignature`."""
    assertions = list(root.iter(f"{{{ASSERTION}}}Assertion"))
    if len(assertions) != 1 or assertions[0].getparent() is not root:
        raise InvalidSignature("The answer must hold one assertion, and not elsewhere than in itself.")
    assertion = assertions[0]
    _ids_are_unique(root)
    signatures = list(root.iter(f"{{{SIGNATURE}}}Signature"))
    signed = [signature.getparent() for signature in signatures]
    if assertion not in signed:
        raise InvalidSignature("The assertion is not signed.")
    if len(signed) != len(set(signed)) or not set(signed) <= {root, assertion}:
        raise InvalidSignature("A signature stands where none belongs.")
    for signature in signatures:
        _plain_signature(signature)
    return assertion


def _ids_are_unique(root: Element) -> None:
    """By any spelling: which attribute is an id must not be a matter of opinion."""
    seen: set[str] = set()
    for element in root.iter("*"):
        for name, value in element.attrib.items():
            if name.rpartition("}")[2].lower() != "id":
                continue
            if name.startswith("{") or value in seen:
                raise InvalidSignature("An id stands in the answer twice, or is not SAML's.")
            seen.add(value)


def _plain_signature(signature: Element) -> None:
    parts = [part.tag for part in signature]
    if not {f"{{{SIGNATURE}}}{name}" for name in ("SignedInfo", "SignatureValue", "KeyInfo")}.issuperset(parts):
        raise InvalidSignature("A signature carries things along.")
    info = _child(signature, "SignedInfo")
    reference = _child(info, "Reference")
    if reference.get("URI") != f"#{signature.getparent().get('ID')}":
        raise InvalidSignature("A signature is not over what it stands in.")
    if _child(info, "CanonicalizationMethod").get("Algorithm") != _EXCLUSIVE:
        raise InvalidSignature("A signature has a canonicalization that is not taken.")
    method = _child(info, "SignatureMethod")
    digest = _child(reference, "DigestMethod")
    if method.get("Algorithm") not in _SIGNATURES or len(method) or digest.get("Algorithm") not in _DIGESTS:
        raise InvalidSignature("A signature has an algorithm that is not taken: RSA or ECDSA with SHA-256 or more is.")
    transforms = [transform.get("Algorithm") for transform in _child(reference, "Transforms")]
    if transforms not in _TRANSFORMS:
        raise InvalidSignature("A signature has transforms that are not taken.")


def _child(parent: Element, name: str) -> Element:
    found = parent.findall(f"{{{SIGNATURE}}}{name}")
    if len(found) != 1:
        raise InvalidSignature(f"A signature must have one {name}.")
    return found[0]


def _settings(issuer: str, trusted: Sequence[x509.Certificate]) -> OneLogin_Saml2_Settings:
    return OneLogin_Saml2_Settings(
        {
            # Not strict: the library then judges version, status, number of assertions and signatures. Its other checks
            # take a recipient that merely contains our address, and know no skew where the contract has one; those of
            # `assertion` hold.
            "strict": False,
            "sp": {"entityId": _NOWHERE, "assertionConsumerService": {"url": _NOWHERE}},
            "idp": {
                "entityId": issuer,
                "singleSignOnService": {"url": _NOWHERE},
                "x509certMulti": {"signing": [certificates.pem(each) for each in trusted]},
            },
            "security": {"rejectDeprecatedAlgorithm": True},
        }
    )


def _fits(key: certificates.SigningKey, signature: bytes, octets: bytes, algorithm: str) -> bool:
    kind, _, size = algorithm.removeprefix(_MORE).partition("-sha")
    try:
        if isinstance(key, RSAPublicKey) and kind == "rsa":
            key.verify(signature, octets, padding.PKCS1v15(), _HASHES[size]())
        elif isinstance(key, ec.EllipticCurvePublicKey) and kind == "ecdsa":
            # As XML signatures write it: both numbers at full length, one behind the other.
            half = len(signature) // 2
            r, s = (int.from_bytes(part, "big") for part in (signature[:half], signature[half:]))
            key.verify(encode_dss_signature(r, s), octets, ec.ECDSA(_HASHES[size]()))
        else:
            return False
    except (BadSignature, ValueError):
        return False
    return True
