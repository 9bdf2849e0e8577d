"""Who this outpost is: the certificate and key of its registration, and tokens that prove it (decisions 8, Outposts).

The files may be replaced while it runs, as a renewal does: the next token and the next connection have the new ones.
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

from gatehouse.foundation import certified
from gatehouse.foundation.settings import BadSettings
from gatehouse.outpost import kept
from gatehouse.outpost.settings import OutpostSettings

log = structlog.get_logger(__name__)

#: Seconds before a token's end from which on a new one is made.
_EARLY: Final = 60
#: Seconds between two looks at the files.
_LOOK: Final = 2.0


class _Held(msgspec.Struct, frozen=True):
    key: EllipticCurvePrivateKey
    chain: list[x509.Certificate]
    stamp: tuple[int, ...]


class Identity:
    """Raises `BadSettings` at once where the files are not a certificate and its key."""

    def __init__(self, outpost_id: UUID, certificate: Path, key: Path, authorities: Path | None) -> None:
        self._outpost_id = outpost_id
        self._certificate, self._key, self._authorities = certificate, key, authorities
        self._tokens: dict[str, tuple[str, float]] = {}
        self._looked = time.monotonic()
        self._held = self._load()
        self._former: EllipticCurvePrivateKey | None = None
        self._context: ssl.SSLContext | None = None

    @classmethod
    def of(cls, settings: OutpostSettings) -> Self:
        """The one that the settings name, which must name one."""
        assert settings.outpost_id is not None
        assert settings.tls_cert_path is not None
        assert settings.tls_key_path is not None
        return cls(settings.outpost_id, settings.tls_cert_path, settings.tls_key_path, settings.tls_ca_bundle)

    @property
    def expires_at(self) -> float:
        """Unix time."""
        return self.certificate.not_valid_after_utc.timestamp()

    @property
    def serial(self) -> str:
        """In hexadecimal, as the portal shows it."""
        return f"{self.certificate.serial_number:x}"

    @property
    def certificate(self) -> x509.Certificate:
        self.refresh()
        return self._held.chain[0]

    @property
    def private_key(self) -> EllipticCurvePrivateKey:
        self.refresh()
        return self._held.key

    def private_keys(self) -> tuple[EllipticCurvePrivateKey, ...]:
        """The certificate's, and the one before it where it was renewed since the start. From any thread."""
        held, former = self._held, self._former
        return (held.key,) if former is None else (held.key, former)

    def token(self, audience: str) -> str:
        """One that is good for a while yet."""
        self.refresh()
        known = self._tokens.get(audience)
        now = time.time()
        if known is None or known[1] - _EARLY <= now:
            claims = {"sub": str(self._outpost_id), "aud": audience}
            token = certified.sign(claims, self._held.key, self._held.chain)
            known = self._tokens[audience] = (token, now + certified.MAX_LIFETIME_SECONDS)
        return known[0]

    def context(self) -> ssl.SSLContext:
        """For calls: shows the certificate to who asks for it. Another object after a renewal."""
        self.refresh()
        if self._context is None:
            context = ssl.create_default_context(cafile=str(self._authorities) if self._authorities else None)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(self._certificate, self._key)
            self._context = context
        return self._context

    def refresh(self) -> None:
        """Takes the files' new content. One that cannot be used changes nothing."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        try:
            if kept.stamp(self._certificate, self._key) == self._held.stamp:
                return
            held = self._load()
        except (BadSettings, OSError) as error:
            # Certificate and key are two files: between the two writes they do not fit.
            log.warning("outpost.certificate_unusable", reason=str(error))
            return
        if held.key.private_numbers() != self._held.key.private_numbers():
            self._former = self._held.key
        self._held = held
        self._tokens.clear()
        self._context = None
        log.info("outpost.certificate_renewed", serial=self.serial, expires_at=self._expiry())

    def _expiry(self) -> str:
        return datetime.fromtimestamp(self.expires_at, UTC).isoformat()

    def _load(self) -> _Held:
        try:
            stamp = kept.stamp(self._certificate, self._key)
            chain = x509.load_pem_x509_certificates(self._certificate.read_bytes())
            key = load_pem_private_key(self._key.read_bytes(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise BadSettings(f"TLS_CERT_PATH, TLS_KEY_PATH: cannot be loaded ({error})") from None
        if not isinstance(key, EllipticCurvePrivateKey) or chain[0].public_key() != key.public_key():
            raise BadSettings("TLS_CERT_PATH, TLS_KEY_PATH: the key is not the certificate's")
        return _Held(key, chain, stamp)
