"""A private certificate authority and the client certificates that it issues. All keys are EC P-256."""

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

#: certificates are valid from this long before their issue, so that machines with a slow clock accept them
_CLOCK_SKEW: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate and its key as PEM. `serial` is in hexadecimal."""

    certificate: str
    key: str = field(repr=False)
    serial: str
    issued_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class CertificateAuthority:
    certificate: x509.Certificate
    key: EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def make(cls, name: str, *, lifetime: timedelta) -> "CertificateAuthority":
        """Returns a new root authority, which signs client certificates but no further authorities."""
        key, now = generate_private_key(SECP256R1()), datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        public = key.public_key()
        certificate = (
            x509.CertificateBuilder(
                subject, subject, public, x509.random_serial_number(), now - _CLOCK_SKEW, now + lifetime
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(key, SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def from_pem(cls, certificate: str, key: bytes) -> "CertificateAuthority":
        """Returns the authority of a certificate and a private key in the form of `pem` and `private_pem`."""
        private_key = load_pem_private_key(key, password=None)
        assert isinstance(private_key, EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate(certificate.encode()), private_key)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def private_pem(self) -> bytes:
        """Returns the private key as unencrypted PKCS 8. Seal it before storing it."""
        return _private_pem(self.key)

    def issue(self, name: str, organization: str, *, lifetime: timedelta) -> IssuedCertificate:
        """Returns a client certificate with a new key. It expires no later than the authority's certificate."""
        key, now = generate_private_key(SECP256R1()), datetime.now(UTC)
        subject = [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        ]
        expires_at = min(now + lifetime, self.certificate.not_valid_after_utc)
        identifier = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        certificate = (
            x509.CertificateBuilder(
                self.certificate.subject, x509.Name(subject), key.public_key(), x509.random_serial_number(),
                now - _CLOCK_SKEW, expires_at,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
            )
            .sign(self.key, SHA256())
        )  # fmt: skip
        return IssuedCertificate(
            certificate=certificate.public_bytes(Encoding.PEM).decode(),
            key=_private_pem(key).decode(),
            serial=f"{certificate.serial_number:x}",
            issued_at=now,
            # Certificates store whole seconds.
            expires_at=certificate.not_valid_after_utc,
        )


def _private_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
