"""How peers know each other: by tokens that their certificates sign, as the platform knows them (decisions 9).

Believed are outposts of the same organization, whose certificates an authority of `TLS_CA_BUNDLE` has issued. Which of
them are revoked is not known here: a revoked one is a peer until its certificate ends, or its address is taken from
`OUTPOST_PEERS` and its own listeners are closed to it.
"""

import time
from collections import OrderedDict
from pathlib import Path
from typing import Final
from uuid import UUID

from cryptography import x509
from cryptography.x509.oid import NameOID

from gatehouse.foundation import certified
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken
from gatehouse.outpost.identity import Identity

_REMEMBERED: Final = 256


class NoPeer(Unauthenticated):
    code = "invalid_token"
    message = "This is for outposts of the same organization, which prove themselves by their certificates."


class Proof:
    """One outpost's."""

    def __init__(self, outpost_id: UUID, identity: Identity, authorities: Path) -> None:
        self._outpost_id = outpost_id
        self._identity = identity
        self._authorities = authorities
        #: verified tokens: whose they are, and until when
        self._known: OrderedDict[str, tuple[UUID, float]] = OrderedDict()

    def token(self, peer_id: UUID) -> str:
        """To be shown to this peer and to no other."""
        return self._identity.token(_audience(peer_id))

    def has_verified(self, token: str) -> bool:
        """Whether this token needs no verification any more, which takes time."""
        return token in self._known

    def verified(self, token: str) -> UUID:
        """The id of the outpost that shows it. Raises `NoPeer`."""
        known = self._known.get(token)
        if known is None:
            known = self._known[token] = self._verify(token)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        if known[1] <= time.time():
            raise NoPeer
        return known[0]

    def _verify(self, token: str) -> tuple[UUID, float]:
        try:
            authorities = x509.load_pem_x509_certificates(self._authorities.read_bytes())
            found = certified.verify(token, authorities, audience=_audience(self._outpost_id))
            peer = UUID(found.subject)
            shown = certified.shown(token)
        except (InvalidToken, ExpiredToken, OSError, ValueError):
            raise NoPeer from None
        own = self._identity.certificate
        organization = _named(own.subject, NameOID.ORGANIZATION_NAME)
        # A certificate that names no organization is of one authority, or anybody's: the bundle may hold public ones.
        if _named(shown.subject, NameOID.ORGANIZATION_NAME) != organization or not (
            organization or shown.issuer == own.issuer
        ):
            raise NoPeer
        # The portal writes the outpost's id there; whoever has made the certificate otherwise answers for the token.
        name = _uuid(_named(shown.subject, NameOID.COMMON_NAME))
        if peer == self._outpost_id or name not in (None, peer):
            raise NoPeer
        return peer, found.expires_at


def _audience(outpost_id: UUID) -> str:
    return f"peer:{outpost_id}"


def _named(name: x509.Name, of: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in name.get_attributes_for_oid(of)]


def _uuid(found: list[str]) -> UUID | None:
    try:
        return UUID(found[0])
    except (IndexError, ValueError):
        return None
