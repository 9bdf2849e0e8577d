"""Turns a browser's form field into a verified assertion: decodes, parses, checks the shape and the signature.

Two independent checks must both pass. python3-saml verifies the signature, and that it covers the assertion that the
library would read. Before that, the message must have the one shape that identity providers send: a response with one
assertion, in which each signature is a child of the element that it signs by its id, and uses the two transforms of
SAML and strong algorithms. Signature wrapping attacks need another shape. The contents are read from the same tree that
was verified.
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

from gatehouse.platform.access.saml.errors import InvalidSignature
from gatehouse.platform.access.saml.protocol import certificates
from gatehouse.platform.access.saml.protocol.messages import (
    ASSERTION,
    NAMESPACES,
    PROTOCOL,
    SIGNATURE,
)

log = structlog.get_logger(__name__)

MAX_BYTES: Final = 256 * 1024
_MAX_BASE64_CHARACTERS: Final = MAX_BYTES * 4 // 3 + 4096

_XMLDSIG_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
_XMLENC: Final = "http://www.w3.org/2001/04/xmlenc#"
_EXCLUSIVE_C14N: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
_ENVELOPED_SIGNATURE: Final = f"{SIGNATURE}enveloped-signature"

_HASHES: Final[dict[str, type[hashes.SHA256 | hashes.SHA384 | hashes.SHA512]]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_SIGNATURE_ALGORITHMS: Final = {f"{_XMLDSIG_MORE}{kind}-sha{size}" for kind in ("rsa", "ecdsa") for size in _HASHES}
_DIGEST_ALGORITHMS: Final = {f"{_XMLENC}sha256", f"{_XMLDSIG_MORE}sha384", f"{_XMLENC}sha512"}
_ALLOWED_TRANSFORMS: Final = ([_ENVELOPED_SIGNATURE, _EXCLUSIVE_C14N], [_ENVELOPED_SIGNATURE])

_SCHEMA_FILE: Final = "saml-schema-protocol-2.0.xsd"

_XML_DECLARATION: Final = re.compile(
    rb"""<\?xml\s{1,9}version\s?=\s?["']1\.[0-9]["'](\s{1,9}encoding\s?=\s?["']utf-?8["'])?"""
    rb"""(\s{1,9}standalone\s?=\s?["'](yes|no)["'])?\s{0,9}\?>""",
    re.IGNORECASE,
)

#: Placeholder for addresses that the library requires but does not use, because it only checks signatures here.
_PLACEHOLDER_URL: Final = "https://unused.invalid/"

Element = Any


def decode(text: str) -> bytes:
    """Return the bytes of a form's base64 field, `MAX_BYTES` at most. Raises `InvalidSignature`."""
    if len(text) > _MAX_BASE64_CHARACTERS:
        raise InvalidSignature("The answer is too large.")
    try:
        raw = b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSignature("The answer is not base64.") from None
    if len(raw) > MAX_BYTES:
        raise InvalidSignature("The answer is too large.")
    return raw


def inflate(text: str) -> bytes:
    """Return the bytes of a URL parameter, which is base64 of compressed bytes, `MAX_BYTES` at most. Raises
    `InvalidSignature`."""
    stream = zlib.decompressobj(-15)
    try:
        raw = stream.decompress(decode(text), MAX_BYTES + 1)
    except zlib.error:
        raise InvalidSignature("The message is not valid DEFLATE data.") from None
    if len(raw) > MAX_BYTES or not stream.eof:
        raise InvalidSignature("The message is too large, or cut short.")
    return raw


def parse(raw: bytes) -> Element:
    """Return the root element. The parser drops comments, so that no comment splits a text. Raises
    `InvalidSignature`."""
    _reject_doctype(raw)
    try:
        return OneLogin_Saml2_XML.to_etree(raw)
    except Exception:  # the parser raises errors of many kinds for a hostile document
        raise InvalidSignature("The message is not XML.") from None


def validate(root: Element, kind: str) -> Element:
    """Return the message if it is of this kind and matches SAML's schema. Raises `InvalidSignature`."""
    if root.tag != f"{{{PROTOCOL}}}{kind}" or not _matches_schema(root):
        raise InvalidSignature(f"The message is not a {kind} by SAML's schema.")
    return root


class Response(msgspec.Struct, frozen=True):
    """A response whose assertion's signature was verified."""

    root: Element
    assertion: Element


def verify_response(raw: bytes, issuer: str, trusted: Sequence[x509.Certificate]) -> Response:
    """Return the response if its assertion is signed by one of these certificates. Raises `InvalidSignature`."""
    _reject_doctype(raw)
    try:
        library_response = OneLogin_Saml2_Response(_settings(issuer, trusted), b64encode(raw))
    except Exception as error:  # an encrypted assertion ends here too
        log.info("saml.answer_not_read", error=type(error).__name__)
        raise InvalidSignature("The answer cannot be read. Encrypted assertions are not supported.") from None
    root = library_response.document
    if root.find("saml:Assertion", NAMESPACES) is None:
        # Usually a failure that the provider reports: the user has no access, or cancelled.
        raise InvalidSignature("The identity provider did not sign a user in.")
    assertion = _check_shape(root)
    validate(root, "Response")
    try:
        is_valid = library_response.is_valid({}, raise_exceptions=True)
    except (OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError):
        is_valid = False
    except Exception:
        # The user sees a bug of the library as a wrong signature; the log shows it to the operator.
        log.exception("saml.signature_not_judged")
        is_valid = False
    if not is_valid:
        raise InvalidSignature("The signature does not match, or the provider reports a failure.")
    return Response(root, assertion)


def verify_query(query: str, parameter: str, trusted: Sequence[x509.Certificate]) -> None:
    """Verify the signature of a redirect's query, over exactly the octets that arrived (SAML Bindings, 3.4.4.1).

    Raises `InvalidSignature`.
    """
    fields: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name in fields:
            raise InvalidSignature("The address has a parameter twice.")
        fields[name] = value
    algorithm = unquote(fields.get("SigAlg", ""))
    if algorithm not in _SIGNATURE_ALGORITHMS or "Signature" not in fields:
        raise InvalidSignature("The message is not signed, or its signature algorithm is not supported.")
    signed = "&".join(f"{name}={fields[name]}" for name in (parameter, "RelayState", "SigAlg") if name in fields)
    try:
        signature = b64decode(unquote(fields["Signature"]), validate=True)
        octets = signed.encode("ascii")
    except ValueError:
        raise InvalidSignature("The signature cannot be read.") from None
    if not any(
        _signature_matches(certificates.public_key(certificate), signature, octets, algorithm)
        for certificate in trusted
    ):
        raise InvalidSignature("The signature does not match.")


def find_one(parent: Element, path: str) -> Element | None:
    """Return the element at this path, or None. Raises `InvalidSignature` if there are several, because it is ambiguous
    which one counts."""
    elements = parent.findall(path, NAMESPACES)
    if len(elements) > 1:
        raise InvalidSignature(f"The message has more than one {path}.")
    return elements[0] if elements else None


def text_of(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _matches_schema(root: Element) -> bool:
    return not isinstance(OneLogin_Saml2_XML.validate_xml(root, _SCHEMA_FILE), str)


def _reject_doctype(raw: bytes) -> None:
    """Reject a document type before parsing, because it can declare entities and load remote files. Accept UTF-8 only,
    so that no other encoding hides a document type. NUL bytes and unusual spellings of the XML declaration are rejected
    too.

    Raises `InvalidSignature`."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidSignature("The message is not UTF-8.") from None
    start = raw.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")
    if b"\0" in raw or not start.startswith(b"<"):
        raise InvalidSignature("The message is not UTF-8.")
    if start[:5].lower() == b"<?xml" and not start[5:6].isalnum() and _XML_DECLARATION.match(start) is None:
        raise InvalidSignature("The message is not UTF-8.")
    if b"<!DOCTYPE" in raw or b"<!ENTITY" in raw or b"<?xml-stylesheet" in raw:
        raise InvalidSignature("The message has a document type.")


def _check_shape(root: Element) -> Element:
    """Check the shape of the response and return its one assertion. Raises `InvalidSignature`."""
    assertions = list(root.iter(f"{{{ASSERTION}}}Assertion"))
    if len(assertions) != 1 or assertions[0].getparent() is not root:
        raise InvalidSignature("The answer must contain exactly one assertion, as a direct child.")
    assertion = assertions[0]
    _check_unique_ids(root)
    signatures = list(root.iter(f"{{{SIGNATURE}}}Signature"))
    signed = [signature.getparent() for signature in signatures]
    if assertion not in signed:
        raise InvalidSignature("The assertion is not signed.")
    if len(signed) != len(set(signed)) or not set(signed) <= {root, assertion}:
        raise InvalidSignature("A signature is in an element that must not have one.")
    for signature in signatures:
        _check_signature_shape(signature)
    return assertion


def _check_unique_ids(root: Element) -> None:
    """Check that ids are unique and that no other spelling of the attribute occurs, so that every library reads the
    same attribute as the id."""
    ids: set[str] = set()
    for element in root.iter("*"):
        for name, value in element.attrib.items():
            if name.rpartition("}")[2].lower() != "id":
                continue
            if name.startswith("{") or value in ids:
                raise InvalidSignature("The answer has an id twice, or an id attribute that is not SAML's.")
            ids.add(value)


def _check_signature_shape(signature: Element) -> None:
    parts = [part.tag for part in signature]
    if not {f"{{{SIGNATURE}}}{name}" for name in ("SignedInfo", "SignatureValue", "KeyInfo")}.issuperset(parts):
        raise InvalidSignature("A signature has additional elements.")
    signed_info = _child(signature, "SignedInfo")
    reference = _child(signed_info, "Reference")
    if reference.get("URI") != f"#{signature.getparent().get('ID')}":
        raise InvalidSignature("A signature does not cover its parent element.")
    if _child(signed_info, "CanonicalizationMethod").get("Algorithm") != _EXCLUSIVE_C14N:
        raise InvalidSignature("A signature has a canonicalization that is not supported.")
    method = _child(signed_info, "SignatureMethod")
    digest = _child(reference, "DigestMethod")
    if (
        method.get("Algorithm") not in _SIGNATURE_ALGORITHMS
        or len(method)
        or digest.get("Algorithm") not in _DIGEST_ALGORITHMS
    ):
        raise InvalidSignature("A signature has an unsupported algorithm: use RSA or ECDSA with SHA-256 or stronger.")
    transforms = [transform.get("Algorithm") for transform in _child(reference, "Transforms")]
    if transforms not in _ALLOWED_TRANSFORMS:
        raise InvalidSignature("A signature has transforms that are not supported.")


def _child(parent: Element, name: str) -> Element:
    elements = parent.findall(f"{{{SIGNATURE}}}{name}")
    if len(elements) != 1:
        raise InvalidSignature(f"A signature must have one {name}.")
    return elements[0]


def _settings(issuer: str, trusted: Sequence[x509.Certificate]) -> OneLogin_Saml2_Settings:
    return OneLogin_Saml2_Settings(
        {
            # Without `strict` the library checks version, status, number of assertions and signatures. Its further
            # checks accept a recipient that only contains this platform's address, and allow no clock skew. The module
            # `assertion` replaces them.
            "strict": False,
            "sp": {"entityId": _PLACEHOLDER_URL, "assertionConsumerService": {"url": _PLACEHOLDER_URL}},
            "idp": {
                "entityId": issuer,
                "singleSignOnService": {"url": _PLACEHOLDER_URL},
                "x509certMulti": {"signing": [certificates.to_pem(certificate) for certificate in trusted]},
            },
            "security": {"rejectDeprecatedAlgorithm": True},
        }
    )


def _signature_matches(key: certificates.VerificationKey, signature: bytes, octets: bytes, algorithm: str) -> bool:
    kind, _, size = algorithm.removeprefix(_XMLDSIG_MORE).partition("-sha")
    try:
        if isinstance(key, RSAPublicKey) and kind == "rsa":
            key.verify(signature, octets, padding.PKCS1v15(), _HASHES[size]())
        elif isinstance(key, ec.EllipticCurvePublicKey) and kind == "ecdsa":
            # In XML signatures, an ECDSA signature is its two numbers at full length, concatenated.
            half = len(signature) // 2
            r, s = (int.from_bytes(part, "big") for part in (signature[:half], signature[half:]))
            key.verify(encode_dss_signature(r, s), octets, ec.ECDSA(_HASHES[size]()))
        else:
            return False
    except (BadSignature, ValueError):
        return False
    return True
