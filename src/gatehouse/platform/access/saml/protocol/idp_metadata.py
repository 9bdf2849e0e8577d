"""Reads an identity provider's metadata (SAML Metadata, 2.4.3).

The metadata's signature is not verified. An administrator enters the metadata and vouches for it, as for fields that
are entered by hand.
"""

from collections.abc import Iterator

import msgspec

from gatehouse.platform.access.saml.errors import InvalidSignature
from gatehouse.platform.access.saml.protocol import certificates, trust
from gatehouse.platform.access.saml.protocol.messages import METADATA, NAMESPACES, REDIRECT
from gatehouse.platform.access.saml.protocol.trust import Element


class BadMetadata(Exception):
    """The document has no usable identity provider. The message is for the administrator."""


class ProviderMetadata(msgspec.Struct, frozen=True):
    entity_id: str
    sso_url: str
    slo_url: str | None
    x509_cert: str


def read(raw: bytes) -> ProviderMetadata:
    """Return the one identity provider that the metadata describes. Raises `BadMetadata`."""
    try:
        root = trust.parse(raw)
    except InvalidSignature:
        raise BadMetadata("is not an XML document in UTF-8 without a document type") from None
    described = [
        (entity, descriptor)
        for entity in root.iter(f"{{{METADATA}}}EntityDescriptor")
        for descriptor in entity.findall("md:IDPSSODescriptor", NAMESPACES)
    ]
    if len(described) != 1:
        raise BadMetadata(f"must describe one identity provider (IDPSSODescriptor); it describes {len(described)}")
    entity, descriptor = described[0]
    sso_url = _redirect_location(descriptor, "SingleSignOnService")
    if not entity.get("entityID") or sso_url is None:
        raise BadMetadata("must have an entityID, and a SingleSignOnService with the binding HTTP-Redirect")
    return ProviderMetadata(
        entity.get("entityID"), sso_url, _redirect_location(descriptor, "SingleLogoutService"), _signing_pem(descriptor)
    )


def _redirect_location(descriptor: Element, service: str) -> str | None:
    for element in descriptor.findall(f"md:{service}", NAMESPACES):
        if element.get("Binding") == REDIRECT:
            location: str | None = element.get("Location")
            return location
    return None


def _signing_pem(descriptor: Element) -> str:
    blocks = dict.fromkeys(_signing_blocks(descriptor))
    pem = "".join(f"-----BEGIN CERTIFICATE-----\n{block}\n-----END CERTIFICATE-----\n" for block in blocks)
    if not blocks:
        raise BadMetadata("must have a signing certificate (KeyDescriptor)")
    try:
        return "".join(certificates.to_pem(certificate) for certificate in certificates.parse(pem))
    except ValueError as error:
        raise BadMetadata(f"its signing certificates: {error}") from None


def _signing_blocks(descriptor: Element) -> Iterator[str]:
    """Yield the signing certificates in base64. A key without `use` is a signing key too."""
    for key in descriptor.findall("md:KeyDescriptor", NAMESPACES):
        if key.get("use", "signing") == "signing":
            for element in key.iterfind(".//ds:X509Certificate", NAMESPACES):
                yield "".join(trust.text_of(element).split())
