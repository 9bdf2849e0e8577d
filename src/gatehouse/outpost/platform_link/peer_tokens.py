"""Authenticates peers by tokens that are signed with the keys of their certificates, in the same way as the platform
(docs/outpost-protocol.md).

An outpost is accepted as a peer if it belongs to the same organization, and if an authority in `TLS_CA_BUNDLE` has
issued its certificate. Outposts receive no revocations. A revoked outpost remains a peer until its certificate
expires, or until an operator removes it from `OUTPOST_PEERS` and blocks its access to this outpost's listeners.
"""

import time
from collections import OrderedDict
from pathlib import Path
from typing import Final
from uuid import UUID

from cryptography import x509
from cryptography.x509.oid import NameOID

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken
from gatehouse.outpost.identity import OutpostIdentity

_MAX_CACHED_TOKENS: Final = 256


class NoPeer(Unauthenticated):
    code = "invalid_token"
    message = "This operation is only for outposts of the same organization that send a token of their certificate."


class Proof:
    """Issues and verifies the peer tokens of one outpost."""

    def __init__(self, outpost_id: UUID, identity: OutpostIdentity, authorities: Path) -> None:
        self._outpost_id = outpost_id
        self._identity = identity
        self._authorities = authorities
        #: Outpost id and expiry of each verified token.
        self._verified_tokens: OrderedDict[str, tuple[UUID, float]] = OrderedDict()

    def token(self, peer_id: UUID) -> str:
        """Returns a token that only this peer accepts."""
        return self._identity.token(_audience(peer_id))

    def has_verified(self, token: str) -> bool:
        """Returns whether the token is in the cache of verified tokens, so that its verification is fast."""
        return token in self._verified_tokens

    def verified(self, token: str) -> UUID:
        """Returns the id of the outpost that the token belongs to. Raises `NoPeer`."""
        verified = self._verified_tokens.get(token)
        if verified is None:
            verified = self._verified_tokens[token] = self._verify(token)
            if len(self._verified_tokens) > _MAX_CACHED_TOKENS:
                self._verified_tokens.popitem(last=False)
        if verified[1] <= time.time():
            raise NoPeer
        return verified[0]

    def _verify(self, token: str) -> tuple[UUID, float]:
        try:
            authorities = x509.load_pem_x509_certificates(self._authorities.read_bytes())
            claims = x5c.verify(token, authorities, audience=_audience(self._outpost_id))
            peer = UUID(claims.subject)
            certificate = x5c.certificate_of(token)
        except (InvalidToken, ExpiredToken, OSError, ValueError):
            raise NoPeer from None
        own_certificate = self._identity.certificate
        organization = _named(own_certificate.subject, NameOID.ORGANIZATION_NAME)
        # A certificate without an organization must have the same issuer as this outpost's certificate, because the CA
        # bundle may contain public authorities.
        if _named(certificate.subject, NameOID.ORGANIZATION_NAME) != organization or not (
            organization or certificate.issuer == own_certificate.issuer
        ):
            raise NoPeer
        # The portal's certificates have the outpost's id as common name. Other certificates may have any text.
        name = _uuid(_named(certificate.subject, NameOID.COMMON_NAME))
        if peer == self._outpost_id or name not in (None, peer):
            raise NoPeer
        return peer, claims.expires_at


def _audience(outpost_id: UUID) -> str:
    return f"peer:{outpost_id}"


def _named(name: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in name.get_attributes_for_oid(oid)]


def _uuid(texts: list[str]) -> UUID | None:
    try:
        return UUID(texts[0])
    except (IndexError, ValueError):
        return None
