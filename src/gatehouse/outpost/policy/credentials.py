"""Authenticates callers by an API key of the bundle, or by a token of one of the outpost's own clients
(docs/outposts.md, "Who may call").

A client's token is a JWT that is signed with `OUTPOST_JWT_SECRET` (HS256). It has the claims `sub` and `exp`, and
`scope` if it is not only for model calls. If `sub` is the id of a user of the organization, the user's groups and
limits apply. If `sub` is not an id, it names a client that exists only at this outpost. An unknown id is refused:
otherwise a deactivated or removed user could continue as such a client, without the limits of the user's groups.
"""

import time
from collections import OrderedDict
from typing import Final
from uuid import UUID, uuid5

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from joserfc.jwt import JWTClaimsRegistry
from pydantic import SecretStr

from gatehouse.engine.exchange import Received
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import SCOPES, Caller, CallerKind
from gatehouse.foundation.secrets import tokens
from gatehouse.ingress.credentials import ExpiredApiKey, InvalidApiKey, MissingCredential, credential_of
from gatehouse.outpost.policy.bundle import BundleStore, InForce, NotLoaded
from gatehouse.policy.bundles.contents import KeyRecord

_ALGORITHM: Final = "HS256"
_LEEWAY_SECONDS: Final = 5
_MAX_TOKEN_CHARACTERS: Final = 8192
_MAX_CACHED_TOKENS: Final = 20_000
_DEFAULT_SCOPES: Final = frozenset({"chat:write", "api:read", "dlp:read"})


class InvalidClientToken(Unauthenticated):
    code = "invalid_token"
    message = "The token is not valid, or has expired."


class UnknownUser(InvalidClientToken):
    message = "The token refers to a user who does not exist in the organization, or who is deactivated."


class _Verified(msgspec.Struct, frozen=True, gc=False):
    subject: str
    expires_at: float
    scopes: frozenset[str]


class LocalCredentials:
    """Implements the engine's `CredentialStore`."""

    def __init__(self, bundles: BundleStore, outpost_id: UUID, secret: SecretStr | None) -> None:
        self._bundles = bundles
        self._outpost_id = outpost_id
        self._secret = None if secret is None else OctKey.import_key(secret.get_secret_value().encode())
        self._verified: OrderedDict[str, _Verified] = OrderedDict()

    def identify(self, received: Received) -> Caller:
        in_force = self._bundles.in_force
        if in_force is None:
            raise NotLoaded
        credential = credential_of(received)
        if credential is None:
            raise MissingCredential
        if credential.startswith("gk_"):
            return self._by_key(credential, in_force)
        if credential.count(".") == 2:
            return self._by_token(credential, in_force)
        raise InvalidApiKey

    def still_good(self, caller: Caller) -> bool:
        in_force = self._bundles.in_force
        if in_force is None or in_force.bundle.tenant_id != caller.tenant_id:
            return False
        if caller.api_key_id is not None:
            key = in_force.callers.key_by_id(caller.api_key_id)
            return key is not None and _usable(key) and in_force.callers.by_key(key) is not None
        return caller.user_id is None or in_force.callers.user(caller.user_id) is not None

    def _by_key(self, credential: str, in_force: InForce) -> Caller:
        key = in_force.callers.key(tokens.digest(credential))
        if key is None or not key.enabled:
            raise InvalidApiKey
        if not _usable(key):
            raise ExpiredApiKey
        caller = in_force.callers.by_key(key)
        if caller is None:
            raise InvalidApiKey
        return caller

    def _by_token(self, token: str, in_force: InForce) -> Caller:
        verified = self._verified.get(token)
        if verified is None:
            verified = self._verified[token] = self._verify(token)
            if len(self._verified) > _MAX_CACHED_TOKENS:
                self._verified.popitem(last=False)
        if verified.expires_at + _LEEWAY_SECONDS <= time.time():
            self._verified.pop(token, None)
            raise InvalidClientToken
        user_id = _uuid(verified.subject)
        if user_id is not None:
            user = in_force.callers.user(user_id)
            if user is None:
                raise UnknownUser
            return in_force.callers.by_user(user, verified.scopes)
        # The platform has no row for the client, so records contain an id that is derived from the client's name.
        client_id = uuid5(self._outpost_id, verified.subject)
        return Caller(
            kind=CallerKind.OAUTH_CLIENT,
            tenant_id=in_force.bundle.tenant_id,
            client_id=client_id,
            scopes=verified.scopes,
            rate_key=f"oauth:{client_id}",
        )

    def _verify(self, token: str) -> _Verified:
        if self._secret is None or len(token) > _MAX_TOKEN_CHARACTERS:
            raise InvalidClientToken
        rules = JWTClaimsRegistry(
            now=int(time.time()), leeway=_LEEWAY_SECONDS, sub={"essential": True}, exp={"essential": True}
        )
        try:
            claims = jwt.decode(token, self._secret, algorithms=[_ALGORITHM]).claims
            rules.validate(claims)
            scope = claims.get("scope")
            scopes = _DEFAULT_SCOPES if scope is None else frozenset(str(scope).split()) & SCOPES
            return _Verified(subject=str(claims["sub"]), expires_at=float(claims["exp"]), scopes=scopes)
        except (JoseError, ValueError, TypeError, RecursionError):
            raise InvalidClientToken from None


def _usable(key: KeyRecord) -> bool:
    return key.enabled and (key.expires_at is None or key.expires_at > time.time())


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
