"""Certificates for servers on this machine."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.outposts import Authority, named


class TlsFiles:
    """A certificate authority for servers on this machine, and the files of a server certificate that is valid for
    `days`. If `days` is negative, the certificate has expired."""

    def __init__(self, folder: Path, days: float = 5) -> None:
        authority, key = Authority("servers"), ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            authority.certificate.subject, named("a server"), key.public_key(), x509.random_serial_number(),
            now - timedelta(days=30), now + timedelta(days=days),
        )  # fmt: skip
        address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        certificate = builder.add_extension(address, critical=False).sign(authority.key, SHA256())
        self.authority, self.certificate, self.key = folder / "ca.pem", folder / "tls.pem", folder / "tls.key"
        self.authority.write_text(authority.pem)
        self.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def trusted(self, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
        """Return a TLS context that trusts the server, and presents a client certificate if there is one."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return context
