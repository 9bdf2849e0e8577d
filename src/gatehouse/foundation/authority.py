"""A private authority, and the client certificates that it issues: EC P-256 throughout (decisions 8, Outposts)."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Clocks of machines differ by a little: what was just issued is good on one that is behind.
_EARLIER: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class Issued:
    """A certificate and its key as PEM. `serial` is in hexadecimal, as everybody shows it."""

    certificate: str
    key: str = field(repr=False)
    serial: str
    issued_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class Authority:
    certificate: x509.Certificate
    key: EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def make(cls, name: str, *, lifetime: timedelta) -> "Authority":
        """A root, which signs certificates of clients and no further authorities."""
        key, now = generate_private_key(SECP256R1()), datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        public = key.public_key()
        certificate = (
            x509.CertificateBuilder(
                subject, subject, public, x509.random_serial_number(), now - _EARLIER, now + lifetime
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(key, SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def from_pem(cls, certificate: str, key: bytes) -> "Authority":
        """Of what `pem` and `private_pem` have given."""
        held = load_pem_private_key(key, password=None)
        assert isinstance(held, EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(certificate.encode()), held)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def private_pem(self) -> bytes:
        """PKCS 8, unencrypted: seal it before it is stored."""
        return _private(self.key)

    def issue(self, name: str, organization: str, *, lifetime: timedelta) -> Issued:
        """A certificate for clients, with a key of its own. It does not outlive the authority's."""
        key, now = generate_private_key(SECP256R1()), datetime.now(UTC)
        subject = [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        ]
        ends = min(now + lifetime, self.certificate.not_valid_after_utc)
        identifier = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        certificate = (
            x509.CertificateBuilder(
                self.certificate.subject, x509.Name(subject), key.public_key(), x509.random_serial_number(),
                now - _EARLIER, ends,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
            )
            .sign(self.key, SHA256())
        )  # fmt: skip
        return Issued(
            certificate=certificate.public_bytes(Encoding.PEM).decode(),
            key=_private(key).decode(),
            serial=f"{certificate.serial_number:x}",
            issued_at=now,
            # As the certificate has it, which counts whole seconds.
            expires_at=certificate.not_valid_after_utc,
        )


def _private(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
