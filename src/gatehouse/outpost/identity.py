"""The outpost's identity: the certificate and key of its registration, and tokens that are signed with the key
(docs/outpost-protocol.md, "Authentication of an outpost").

The files may be renewed while the process runs. The next token and the next connection then use the new files.
"""

import ssl
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self
from uuid import UUID

import msgspec
import structlog
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import durable_files
from gatehouse.outpost.settings import OutpostSettings

log = structlog.get_logger(__name__)

#: A token is replaced this number of seconds before it expires.
_RENEW_BEFORE_SECONDS: Final = 60
#: Seconds between two checks of the files.
_CHECK_INTERVAL_SECONDS: Final = 2.0


class _LoadedCertificate(msgspec.Struct, frozen=True):
    key: EllipticCurvePrivateKey
    chain: list[x509.Certificate]
    stamp: tuple[int, ...]


class OutpostIdentity:
    """The certificate and key of one outpost. Raises `BadSettings` if the files do not contain a certificate and its
    key."""

    def __init__(self, outpost_id: UUID, certificate: Path, key: Path, authorities: Path | None) -> None:
        self._outpost_id = outpost_id
        self._certificate, self._key, self._authorities = certificate, key, authorities
        self._tokens: dict[str, tuple[str, float]] = {}
        self._checked_at = time.monotonic()
        self._loaded = self._load()
        self._former: EllipticCurvePrivateKey | None = None
        self._context: ssl.SSLContext | None = None

    @classmethod
    def of(cls, settings: OutpostSettings) -> Self:
        """Returns the identity that the settings name. They must contain an outpost id, a certificate and a key."""
        assert settings.outpost_id is not None
        assert settings.tls_cert_path is not None
        assert settings.tls_key_path is not None
        return cls(settings.outpost_id, settings.tls_cert_path, settings.tls_key_path, settings.tls_ca_bundle)

    @property
    def expires_at(self) -> float:
        """Returns the expiry of the certificate as Unix time."""
        return self.certificate.not_valid_after_utc.timestamp()

    @property
    def serial(self) -> str:
        """Returns the serial number in hexadecimal, as the portal shows it."""
        return f"{self.certificate.serial_number:x}"

    @property
    def certificate(self) -> x509.Certificate:
        self.refresh()
        return self._loaded.chain[0]

    @property
    def private_key(self) -> EllipticCurvePrivateKey:
        self.refresh()
        return self._loaded.key

    def private_keys(self) -> tuple[EllipticCurvePrivateKey, ...]:
        """Returns the certificate's key, and the previous key if the key has been renewed since the start. Any thread
        may call this method."""
        current, former = self._loaded, self._former
        return (current.key,) if former is None else (current.key, former)

    def token(self, audience: str) -> str:
        """Returns a token that is valid for at least another minute."""
        self.refresh()
        cached = self._tokens.get(audience)
        now = time.time()
        if cached is None or cached[1] - _RENEW_BEFORE_SECONDS <= now:
            claims = {"sub": str(self._outpost_id), "aud": audience}
            token = x5c.sign(claims, self._loaded.key, self._loaded.chain)
            cached = self._tokens[audience] = (token, now + x5c.MAX_LIFETIME_SECONDS)
        return cached[0]

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context for calls, with the client certificate. After a renewal this is a new object."""
        self.refresh()
        if self._context is None:
            context = ssl.create_default_context(cafile=str(self._authorities) if self._authorities else None)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(self._certificate, self._key)
            self._context = context
        return self._context

    def refresh(self) -> None:
        """Loads the files if they have changed. If the new files are unusable, the identity does not change."""
        now = time.monotonic()
        if now - self._checked_at < _CHECK_INTERVAL_SECONDS:
            return
        self._checked_at = now
        try:
            if durable_files.stamp(self._certificate, self._key) == self._loaded.stamp:
                return
            renewed = self._load()
        except (BadSettings, OSError) as error:
            # A renewal writes two files, the certificate and the key. Between the two writes they do not match.
            log.warning("outpost.certificate_unusable", reason=str(error))
            return
        if renewed.key.private_numbers() != self._loaded.key.private_numbers():
            self._former = self._loaded.key
        self._loaded = renewed
        self._tokens.clear()
        self._context = None
        log.info("outpost.certificate_renewed", serial=self.serial, expires_at=self._expiry())

    def _expiry(self) -> str:
        return datetime.fromtimestamp(self.expires_at, UTC).isoformat()

    def _load(self) -> _LoadedCertificate:
        try:
            stamp = durable_files.stamp(self._certificate, self._key)
            chain = x509.load_pem_x509_certificates(self._certificate.read_bytes())
            key = load_pem_private_key(self._key.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise BadSettings(f"TLS_CERT_PATH, TLS_KEY_PATH: cannot be loaded ({error})") from None
        if not isinstance(key, EllipticCurvePrivateKey) or chain[0].public_key() != key.public_key():
            raise BadSettings("TLS_CERT_PATH, TLS_KEY_PATH: the key does not belong to the certificate")
        return _LoadedCertificate(key, chain, stamp)
