"""Messages of identity providers, correct unless the test changes them. They are signed with xmlsec."""

import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4
from xml.sax.saxutils import escape

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from lxml import etree

NS: Final = {
    "saml": "urn:oasis:names:tc:SAML:2.0:assertion",
    "samlp": "urn:oasis:names:tc:SAML:2.0:protocol",
    "ds": "http://www.w3.org/2000/09/xmldsig#",
    "md": "urn:oasis:names:tc:SAML:2.0:metadata",
}
RSA_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
SUCCESS: Final = "urn:oasis:names:tc:SAML:2.0:status:Success"
EMAIL_FORMAT: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"


@dataclass(frozen=True)
class Signer:
    """A key and its certificate, in PEM."""

    key: str = field(repr=False)
    certificate: str
    private: Any = field(repr=False)

    @classmethod
    def new(cls, kind: str = "rsa", *, bits: int = 2048) -> "Signer":
        private: Any = (
            rsa.generate_private_key(65537, bits) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
        )
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's identity provider")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
            .sign(private, hashes.SHA256())
        )
        key = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return cls(key, certificate.public_bytes(Encoding.PEM).decode(), private)

    @property
    def bare_certificate(self) -> str:
        """Return the certificate without its BEGIN and END lines."""
        return "".join(self.certificate.split("-----")[2].split())


@dataclass(frozen=True)
class AssertionFields:
    """The contents of a response. Times are seconds from now. `gatehouse_url` is the public URL of Gatehouse.

    If `in_response_to`, `email` or `session_until` is None, the response does not contain it. The other fields with the
    value None have the values of a correct response: `response_issuer` is the issuer, `audience`, `recipient` and
    `destination` are URLs of Gatehouse, and `response_in_response_to` is `in_response_to`."""

    issuer: str
    gatehouse_url: str
    in_response_to: str | None
    email: str | None = None
    name_id: str = "ada"
    name_id_format: str = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
    attributes: dict[str, list[str]] = field(default_factory=dict)
    response_issuer: str | None = None
    audience: str | None = None
    recipient: str | None = None
    destination: str | None = None
    response_in_response_to: str | None = None
    status: str = SUCCESS
    issued: float = 0
    conditions_from: float = -60
    conditions_until: float = 300
    confirmed_until: float = 300
    session_until: float | None = None
    session_index: str = "s-1"
    extra_condition: str = ""
    assertion_id: str = ""

    def but(self, **changes: Any) -> "AssertionFields":
        return replace(self, **changes)


def key_descriptor(certificate: str, use: str = ' use="signing"') -> str:
    """Return a key of a provider's metadata. `certificate` is in base64."""
    content = f"<ds:X509Certificate>\n{certificate}\n</ds:X509Certificate>"
    return f"<md:KeyDescriptor{use}><ds:KeyInfo><ds:X509Data>{content}</ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"


def provider_metadata(
    provider_url: str, certificate: str, *, entity: str = "", keys: str | None = None, services: str | None = None
) -> str:
    """Return metadata as providers publish it: with both bindings, and with a key for encryption, which Gatehouse does
    not use. `provider_url` is the URL of the provider. `certificate` is PEM."""
    bare = "".join(certificate.split("-----")[2].split())
    keys = keys or key_descriptor(bare) + key_descriptor("bm8=", ' use="encryption"')
    services = services or "".join(
        f'<md:{service} Binding="urn:oasis:names:tc:SAML:2.0:bindings:{binding}" Location="{provider_url}/{path}"/>'
        for service, path in (("SingleLogoutService", "slo"), ("SingleSignOnService", "sso"))
        for binding, path in (("HTTP-POST", f"{path}/post"), ("HTTP-Redirect", path))
    )
    return (
        f'<?xml version="1.0"?><md:EntityDescriptor xmlns:md="{NS["md"]}" xmlns:ds="{NS["ds"]}"'
        f' entityID="{entity or provider_url}"><md:IDPSSODescriptor protocolSupportEnumeration="{NS["samlp"]}">'
        f"{keys}{services}</md:IDPSSODescriptor></md:EntityDescriptor>"
    )


def moment(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def response_text(fields: AssertionFields) -> str:
    """Return an unsigned response."""
    acs = f"{fields.gatehouse_url}/api/saml/acs"
    audience = fields.audience or f"{fields.gatehouse_url}/api/saml/metadata"
    values = {**fields.attributes, **({"email": [fields.email]} if fields.email is not None else {})}
    attributes = "".join(
        f'<saml:Attribute Name="{escape(name)}">'
        + "".join(f"<saml:AttributeValue>{escape(value)}</saml:AttributeValue>" for value in content)
        + "</saml:Attribute>"
        for name, content in values.items()
    )
    statement = f"<saml:AttributeStatement>{attributes}</saml:AttributeStatement>" if attributes else ""
    to = "" if fields.in_response_to is None else f' InResponseTo="{fields.in_response_to}"'
    head_to = to if fields.response_in_response_to is None else f' InResponseTo="{fields.response_in_response_to}"'
    session = "" if fields.session_until is None else f' SessionNotOnOrAfter="{moment(fields.session_until)}"'
    return (
        f'<samlp:Response xmlns:samlp="{NS["samlp"]}" xmlns:saml="{NS["saml"]}" ID="_{uuid4().hex}" Version="2.0"'
        f' IssueInstant="{moment(fields.issued)}" Destination="{fields.destination or acs}"{head_to}>'
        f"<saml:Issuer>{escape(fields.response_issuer or fields.issuer)}</saml:Issuer>"
        f'<samlp:Status><samlp:StatusCode Value="{fields.status}"/></samlp:Status>'
        f'<saml:Assertion ID="{fields.assertion_id or "_" + uuid4().hex}" Version="2.0"'
        f' IssueInstant="{moment(fields.issued)}">'
        f"<saml:Issuer>{escape(fields.issuer)}</saml:Issuer>"
        f'<saml:Subject><saml:NameID Format="{fields.name_id_format}">{fields.name_id}</saml:NameID>'
        '<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">'
        f'<saml:SubjectConfirmationData NotOnOrAfter="{moment(fields.confirmed_until)}"'
        f' Recipient="{fields.recipient or acs}"{to}/>'
        "</saml:SubjectConfirmation></saml:Subject>"
        f'<saml:Conditions NotBefore="{moment(fields.conditions_from)}"'
        f' NotOnOrAfter="{moment(fields.conditions_until)}">'
        f"<saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience>"
        f"</saml:AudienceRestriction>{fields.extra_condition}</saml:Conditions>"
        f'<saml:AuthnStatement AuthnInstant="{moment(fields.issued)}" SessionIndex="{fields.session_index}"{session}>'
        "<saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password"
        f"</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>{statement}"
        "</saml:Assertion></samlp:Response>"
    )


def tree(text: str) -> Any:
    return etree.fromstring(text.encode())


def reparse(root: Any) -> Any:
    """Serialize and parse the tree again, because lxml cannot find elements that xmlsec added by name."""
    return etree.fromstring(etree.tostring(root))


def assertion_of(root: Any) -> Any:
    return root.find("saml:Assertion", NS)


def sign(
    element: Any,
    signer: Signer,
    *,
    method: Any = None,
    digest: Any = xmlsec.Transform.SHA256,
    transforms: tuple[Any, ...] = (xmlsec.Transform.ENVELOPED, xmlsec.Transform.EXCL_C14N),
    hmac_key: bytes | None = None,
) -> None:
    """Sign the element. The signature is added after its `Issuer` element."""
    if method is None:
        is_rsa = isinstance(signer.private, rsa.RSAPrivateKey)
        method = xmlsec.Transform.RSA_SHA256 if is_rsa else xmlsec.Transform.ECDSA_SHA256
    signature = xmlsec.template.create(element, xmlsec.Transform.EXCL_C14N, method, ns="ds")
    element.find("saml:Issuer", NS).addnext(signature)
    reference = xmlsec.template.add_reference(signature, digest, uri="#" + element.get("ID"))
    for transform in transforms:
        xmlsec.template.add_transform(reference, transform)
    context = xmlsec.SignatureContext()
    if hmac_key is not None:
        context.key = xmlsec.Key.from_binary_data(xmlsec.KeyData.HMAC, hmac_key)
    else:
        xmlsec.template.add_x509_data(xmlsec.template.ensure_key_info(signature))
        context.key = xmlsec.Key.from_memory(signer.key, xmlsec.KeyFormat.PEM)
        context.key.load_cert_from_memory(signer.certificate, xmlsec.KeyFormat.PEM)
    context.register_id(element, "ID")
    context.sign(signature)


def signed(fields: AssertionFields, signer: Signer, *, message_too: bool = False) -> Any:
    """Return the response as an element. Its assertion is signed, and with `message_too` the response too."""
    root = tree(response_text(fields))
    sign(assertion_of(root), signer)
    if message_too:
        sign(root, signer)
    return reparse(root)


def encoded(root: Any) -> str:
    raw = root if isinstance(root, bytes) else etree.tostring(root)
    return b64encode(raw).decode()


def logout_request(
    issuer: str,
    gatehouse_url: str,
    *,
    name_id: str,
    session_index: str | None = None,
    destination: str = "",
    issued: float = 0,
) -> bytes:
    index = "" if session_index is None else f"<samlp:SessionIndex>{session_index}</samlp:SessionIndex>"
    return (
        f'<samlp:LogoutRequest xmlns:samlp="{NS["samlp"]}" xmlns:saml="{NS["saml"]}" ID="_{uuid4().hex}" Version="2.0"'
        f' IssueInstant="{moment(issued)}" Destination="{destination or gatehouse_url + "/api/saml/slo"}">'
        f"<saml:Issuer>{escape(issuer)}</saml:Issuer><saml:NameID>{name_id}</saml:NameID>{index}</samlp:LogoutRequest>"
    ).encode()


def logout_response(issuer: str, gatehouse_url: str, *, in_response_to: str) -> bytes:
    return (
        f'<samlp:LogoutResponse xmlns:samlp="{NS["samlp"]}" xmlns:saml="{NS["saml"]}" ID="_{uuid4().hex}" Version="2.0"'
        f' IssueInstant="{moment(0)}" Destination="{gatehouse_url}/api/saml/slo"'
        f' InResponseTo="{in_response_to}">'
        f"<saml:Issuer>{escape(issuer)}</saml:Issuer>"
        f'<samlp:Status><samlp:StatusCode Value="{SUCCESS}"/></samlp:Status></samlp:LogoutResponse>'
    ).encode()


def redirect_query(parameter: str, message: bytes, signer: Signer, relay_state: str | None = None) -> str:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = compressor.compress(message) + compressor.flush()
    query = f"{parameter}={quote(b64encode(deflated), safe='')}"
    query += "" if relay_state is None else f"&RelayState={quote(relay_state, safe='')}"
    query += f"&SigAlg={quote(RSA_SHA256, safe='')}"
    signature = signer.private.sign(query.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{query}&Signature={quote(b64encode(signature), safe='')}"


def message_in_url(url: str, parameter: str, certificates: list[str] | None = None) -> Any:
    """Return the message in a URL. With certificates (base64, from metadata), its signature must match one of them."""
    query = urlsplit(url).query
    fields = {name: values[0] for name, values in parse_qs(query).items()}
    if certificates is not None:
        octets = query[query.index(parameter) : query.index("&Signature=")].encode()
        signature = b64decode(fields["Signature"])
        assert fields["SigAlg"] == RSA_SHA256
        assert any(_fits(certificate, signature, octets) for certificate in certificates), "the signature does not fit"
    return etree.fromstring(zlib.decompress(b64decode(fields[parameter]), -15))


def _fits(certificate: str, signature: bytes, octets: bytes) -> bool:
    key: Any = x509.load_der_x509_certificate(b64decode(certificate)).public_key()
    try:
        key.verify(signature, octets, padding.PKCS1v15(), hashes.SHA256())
    except Exception:
        return False
    return True
