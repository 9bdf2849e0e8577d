"""Request and response bodies of the identity providers' endpoints."""

from datetime import datetime
from typing import Annotated, Self
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from gatehouse.foundation.http.bodies import Body, ResponseBody, partial
from gatehouse.platform.access.saml.protocol import certificates
from gatehouse.platform.access.saml.protocol.trust import MAX_BYTES


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        has_valid_port = parts.port is None or parts.port > 0
    except ValueError:
        has_valid_port = False
    if not has_valid_port or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https address")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("may have no credentials and no fragment")
    if any(character <= " " or character in "\\\x7f" or character > "~" for character in url):
        raise ValueError("may have no blanks, backslashes or characters beyond ASCII")
    return url


def _certificates(text: str) -> str:
    certificates.parse(text)
    return text


Name = Annotated[str, Field(min_length=1, max_length=255, examples=["Acme Okta"])]
EntityId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1024,
        description="The `Issuer` of the provider's responses.",
        examples=["https://idp.acme.test"],
    ),
]
Url = Annotated[str, Field(max_length=2048), AfterValidator(_web_address)]
SsoUrl = Annotated[
    Url, Field(description="The URL that sign-in requests are sent to.", examples=["https://idp.acme.test/sso"])
]
SloUrl = Annotated[
    Url, Field(description="The URL that logout requests are sent to.", examples=["https://idp.acme.test/slo"])
]
# The text is not normalized, so that administrators get back the text that they pasted.
Certificate = Annotated[
    str,
    StringConstraints(strip_whitespace=False, max_length=32_768),
    AfterValidator(_certificates),
    Field(
        description="The certificate that signs the provider's responses, in PEM with or without BEGIN and END lines;"
        " or up to four certificates with these lines, each of which is accepted. RSA of 2048 bits or more, or an"
        " elliptic curve of 256 bits or more.",
        examples=["-----BEGIN CERTIFICATE-----\nMIIC...\n-----END CERTIFICATE-----"],
    ),
]
IdpInitiated = Annotated[
    bool,
    Field(
        description="Whether to accept sign-ins that begin at the provider. They are not bound to the browser that"
        " finishes them."
    ),
]
AttributeName = Annotated[str, Field(min_length=1, max_length=1024, examples=["urn:oid:0.9.2342.19200300.100.1.3"])]


class AttributeMapping(Body):
    """Names or OIDs of the attributes to read. Fields without a mapping are read from the standard attributes."""

    email: AttributeName | None = None
    username: AttributeName | None = None
    groups: AttributeName | None = None


class NewIdp(Body):
    name: Name
    entity_id: EntityId
    sso_url: SsoUrl
    x509_cert: Certificate
    slo_url: SloUrl | None = None
    attribute_mapping: AttributeMapping | None = None
    is_active: bool = True
    allow_idp_initiated: IdpInitiated = False


@partial
class IdpUpdate(NewIdp):
    """A partial update: fields that are left out keep their values. Null clears `slo_url`, and resets
    `attribute_mapping` to the defaults."""


class ShownMapping(ResponseBody):
    email: str | None = None
    username: str | None = None
    groups: str | None = None


class IdpCertificate(ResponseBody):
    expires_at: Annotated[datetime, Field(description="For information only: an expired certificate is accepted.")]
    sha256: Annotated[str, Field(description="The fingerprint.", examples=["5f2a..."])]


class Idp(ResponseBody):
    id: UUID
    name: str
    entity_id: str
    sso_url: str
    slo_url: str | None
    x509_cert: str
    certificates: Annotated[
        list[IdpCertificate], Field(description="The certificates in `x509_cert`, in the same order.")
    ]
    attribute_mapping: ShownMapping | None
    is_active: bool
    allow_idp_initiated: bool
    created_at: datetime
    updated_at: datetime


class IdpList(ResponseBody):
    idps: list[Idp]
    total: int


class MetadataSource(Body):
    """The text of the metadata, or its URL."""

    xml: Annotated[
        str | None,
        StringConstraints(strip_whitespace=False, max_length=MAX_BYTES),
        Field(description="The text of the metadata file."),
    ] = None
    url: Annotated[
        str | None,
        Field(
            max_length=2048,
            description="The URL at which the provider publishes its metadata: HTTPS, on the open internet or in a"
            " network of EGRESS_ALLOWLIST. Redirects are not followed.",
            examples=["https://idp.acme.test/metadata"],
        ),
    ] = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.xml is None) == (self.url is None):
            raise ValueError("send xml or url, one of them")
        return self


class IdpMetadata(ResponseBody):
    """The contents of a provider's metadata, as fields of an identity provider."""

    entity_id: str
    sso_url: str
    slo_url: str | None
    x509_cert: Annotated[str, Field(description="The signing certificates, in PEM.")]


class ServiceProviderDetails(ResponseBody):
    """The addresses of this platform that an identity provider needs. They are null if PUBLIC_URL is not set."""

    entity_id: Annotated[
        str | None, Field(description="The audience of the assertions; also the address of this platform's metadata.")
    ]
    acs_url: Annotated[str | None, Field(description="The assertion consumer service, HTTP-POST.")]
    slo_url: Annotated[str | None, Field(description="The single logout service, HTTP-Redirect.")]
