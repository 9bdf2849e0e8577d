"""Writes SAML messages, and encodes them for the redirect binding (SAML Bindings, 3.4)."""

import zlib
from base64 import b64encode
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from lxml import etree
from lxml.builder import ElementMaker

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.tasks import BoundedThreadPool
from gatehouse.platform.access.saml.errors import SamlBusy
from gatehouse.platform.access.saml.protocol.keys import SamlKey
from gatehouse.platform.access.saml.protocol.service_provider import ServiceProvider

#: Threads for work on XML and keys. `run` raises `SamlBusy` if too many tasks wait.
XML_THREADS: Final = BoundedThreadPool("saml", threads=2, max_waiting=32, busy=SamlBusy)

ASSERTION: Final = "urn:oasis:names:tc:SAML:2.0:assertion"
PROTOCOL: Final = "urn:oasis:names:tc:SAML:2.0:protocol"
METADATA: Final = "urn:oasis:names:tc:SAML:2.0:metadata"
SIGNATURE: Final = "http://www.w3.org/2000/09/xmldsig#"
NAMESPACES: Final = {"saml": ASSERTION, "samlp": PROTOCOL, "ds": SIGNATURE, "md": METADATA}

POST: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
REDIRECT: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
EMAIL_FORMAT: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
UNSPECIFIED_FORMAT: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
SUCCESS: Final = "urn:oasis:names:tc:SAML:2.0:status:Success"
RSA_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"

_saml = ElementMaker(namespace=ASSERTION, nsmap=NAMESPACES)
_samlp = ElementMaker(namespace=PROTOCOL, nsmap={"saml": ASSERTION, "samlp": PROTOCOL})
_md = ElementMaker(namespace=METADATA, nsmap={"md": METADATA, "ds": SIGNATURE})
_ds = ElementMaker(namespace=SIGNATURE, nsmap={"ds": SIGNATURE})


def metadata(sp: ServiceProvider, certificates: list[str]) -> bytes:
    """Return the metadata of this service provider. `certificates` are in PEM, the certificate of the signing key
    first."""
    keys = [
        _md.KeyDescriptor(
            _ds.KeyInfo(_ds.X509Data(_ds.X509Certificate("".join(certificate.split("-----")[2].split())))),
            use="signing",
        )
        for certificate in certificates
    ]
    descriptor = _md.SPSSODescriptor(
        *keys,
        _md.SingleLogoutService(Binding=REDIRECT, Location=sp.slo_url),
        _md.NameIDFormat(EMAIL_FORMAT),
        _md.NameIDFormat(UNSPECIFIED_FORMAT),
        _md.AssertionConsumerService(Binding=POST, Location=sp.acs_url, index="1", isDefault="true"),
        AuthnRequestsSigned="true",
        WantAssertionsSigned="true",
        protocolSupportEnumeration=PROTOCOL,
    )
    return _serialize(_md.EntityDescriptor(descriptor, entityID=sp.entity_id), declaration=True)


def authn_request(request_id: str, sp: ServiceProvider, destination: str) -> bytes:
    """Return a sign-in request. It does not require a NameID format, because providers support different formats and
    may send the address as an attribute."""
    return _serialize(
        _samlp.AuthnRequest(
            _saml.Issuer(sp.entity_id),
            _samlp.NameIDPolicy(Format=UNSPECIFIED_FORMAT, AllowCreate="true"),
            **_message_attributes(request_id, destination),
            ProtocolBinding=POST,
            AssertionConsumerServiceURL=sp.acs_url,
        )
    )


def logout_request(
    request_id: str,
    sp: ServiceProvider,
    destination: str,
    *,
    name_id: str,
    name_id_attributes: dict[str, str],
    session_index: str | None,
) -> bytes:
    indexes = [] if session_index is None else [_samlp.SessionIndex(session_index)]
    return _serialize(
        _samlp.LogoutRequest(
            _saml.Issuer(sp.entity_id),
            _saml.NameID(name_id, **name_id_attributes),
            *indexes,
            **_message_attributes(request_id, destination),
        )
    )


def logout_response(response_id: str, sp: ServiceProvider, destination: str, *, in_response_to: str) -> bytes:
    return _serialize(
        _samlp.LogoutResponse(
            _saml.Issuer(sp.entity_id),
            _samlp.Status(_samlp.StatusCode(Value=SUCCESS)),
            **_message_attributes(response_id, destination),
            InResponseTo=in_response_to,
        )
    )


def redirect_url(url: str, parameter: str, message: bytes, relay_state: str | None, key: SamlKey) -> str:
    """Return the URL that carries the message, signed over exactly the octets that are sent."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = compressor.compress(message) + compressor.flush()
    fields = {parameter: b64encode(deflated).decode("ascii")}
    if relay_state is not None:
        fields["RelayState"] = relay_state
    fields["SigAlg"] = RSA_SHA256
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    signature = key.private_key.sign(query.encode("ascii"), padding.PKCS1v15(), hashes.SHA256())
    separator = "&" if urlsplit(url).query else "?"
    return f"{url}{separator}{query}&Signature={quote(b64encode(signature).decode('ascii'), safe='')}"


def _message_attributes(message_id: str, destination: str) -> dict[str, str]:
    return {"ID": message_id, "Version": "2.0", "IssueInstant": _format_time(utc_now()), "Destination": destination}


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _serialize(element: etree._Element, *, declaration: bool = False) -> bytes:
    etree.cleanup_namespaces(element)
    xml: bytes = etree.tostring(element, xml_declaration=declaration, encoding="UTF-8")
    return xml
