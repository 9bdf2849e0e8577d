"""Identifies callers from the replica: by a dictionary lookup for a key, and by a cached verification for a token."""

import time
from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import Received
from gatehouse.foundation import emails, jwt
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import SCOPES, Caller, CallerKind, Role, TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.ingress.credentials import ExpiredApiKey, InvalidApiKey, MissingCredential, credential_of
from gatehouse.platform.live import resources
from gatehouse.platform.live.replica import outpost_tokens
from gatehouse.platform.live.replica.outpost_tokens import OutpostTokens
from gatehouse.platform.live.replica.state import (
    LiveClient,
    LiveKey,
    LiveTenant,
    LiveUser,
    Replica,
)
from gatehouse.platform.live.stored_callers import StoredCaller
from gatehouse.platform.live.uses import RecentUses


class InvalidBearerToken(Unauthenticated):
    code = "invalid_token"
    message = "The token is not valid, has expired, or was revoked."


#: SCIM tokens are valid only under this path prefix, and no other credential is valid there (docs/scim.md).
SCIM_PREFIX: Final = "/api/scim/v2"

#: Tokens of outposts are valid only under this path prefix, and no other credential is valid there.
OUTPOSTS_PREFIX: Final = "/v1/outposts"

#: Maximum number of entries in the cache of verified tokens and in the cache of callers. Verifying a signature costs a
#: hundred times as much as a lookup.
_MAX_CACHED_CREDENTIALS: Final = 20_000


#: Kinds of callers by the claim `token_type` of their token.
_KINDS: Final = {None: CallerKind.USER, "m2m": CallerKind.OAUTH_CLIENT, "application": CallerKind.APPLICATION}


class VerifiedToken(msgspec.Struct, frozen=True, gc=False):
    """The claims of a token whose signature, issuer and times are valid. `subject` is the id of a user or client.
    `session_id` is None for the token of a client. `client_id` and `grant_id` are None except for the token of an
    application. Times are Unix times."""

    subject: UUID
    kind: CallerKind
    expires_at: float
    tenant_id: UUID | None
    session_id: UUID | None
    scopes: frozenset[str]
    rate_limit_tier: str
    mfa_at: float | None
    issued_at: float
    client_id: UUID | None
    grant_id: UUID | None
    #: the path to which the token is limited; None for all paths
    resource: str | None = None


class LiveCredentials:
    """Implements the engine's port `CredentialStore`, which administration uses too. `issuer` is the issuer and the
    audience that a token must name."""

    def __init__(self, replica: Replica, *, issuer: str, enforce_scopes: bool) -> None:
        self._replica = replica
        self._issuer = issuer
        self._enforce_scopes = enforce_scopes
        self._verified: OrderedDict[str, VerifiedToken] = OrderedDict()
        #: callers by the digest of their key, together with the replica's entries from which they were built
        self._key_callers: OrderedDict[bytes, tuple[LiveKey, LiveUser, LiveTenant, Caller]] = OrderedDict()
        self._outposts = OutpostTokens(issuer)
        self.uses = RecentUses()
        #: the keys with which the cached tokens were verified
        self._verified_by = replica.signing_keys

    def identify(self, received: Received) -> Caller:
        credential = credential_of(received)
        if credential is None:
            raise MissingCredential
        if received.path.startswith(SCIM_PREFIX):
            return self._by_scim_token(credential)
        if received.path.startswith(OUTPOSTS_PREFIX):
            return self._by_outpost_token(credential)
        if credential.startswith("gk_"):
            return self._by_key(credential)
        if credential.count(".") == 2:
            return self._by_token(credential, received.path)
        raise InvalidApiKey

    def still_good(self, caller: Caller) -> bool:
        replica = self._replica
        if caller.tenant_id is not None and caller.tenant_id not in replica.tenants:
            return False
        if caller.kind is CallerKind.OUTPOST:
            return outpost_tokens.still_good(caller, replica.outpost_trust)
        if caller.kind is CallerKind.OAUTH_CLIENT:
            assert caller.client_id is not None
            return self._client_good(caller.client_id)
        if caller.kind is CallerKind.APPLICATION:
            assert caller.client_id is not None
            client = replica.clients.get(caller.client_id)
            if client is None or not client.enabled:
                return False
        user = replica.users.get(caller.user_id) if caller.user_id else None
        if user is None or not user.active:
            return False
        if caller.api_key_id is not None:
            digest = replica.key_digests.get(caller.api_key_id)
            return digest is not None and replica.keys[digest].usable(time.time())
        return caller.session_id not in replica.revoked and caller.grant_id not in replica.revoked

    def restore(self, stored: StoredCaller) -> Caller:
        """Return the caller of a stored credential, with their current rights. The token may have expired since it was
        stored. Raises a subclass of `Unauthenticated` if the credential has been revoked, or its client was deleted."""
        if stored.api_key_id is not None:
            digest = self._replica.key_digests.get(stored.api_key_id)
            if digest is None:
                raise InvalidApiKey
            return self._by_digest(digest)
        now = time.time()
        subject = stored.client_id if stored.kind is CallerKind.OAUTH_CLIENT else stored.user_id
        if subject is None:
            raise InvalidBearerToken
        if stored.kind is CallerKind.OAUTH_CLIENT and subject not in self._replica.clients:
            # Tokens of a deleted client can remain valid until they expire. A stored credential has no expiry, so it is
            # refused at once.
            raise InvalidBearerToken
        verified = VerifiedToken(
            subject=subject,
            kind=stored.kind,
            expires_at=now,
            tenant_id=stored.tenant_id,
            session_id=stored.session_id,
            scopes=stored.scopes or frozenset(),
            rate_limit_tier=stored.rate_limit_tier,
            mfa_at=None,
            issued_at=now,
            client_id=stored.client_id,
            grant_id=stored.grant_id,
        )
        return self._of_verified(verified)

    def _by_key(self, key: str) -> Caller:
        return self._by_digest(tokens.digest(key))

    def _by_digest(self, digest: bytes) -> Caller:
        replica = self._replica
        live = replica.keys.get(digest)
        if live is None or not live.enabled:
            raise InvalidApiKey
        now = time.time()
        if not live.usable(now):
            raise ExpiredApiKey
        user = replica.users.get(live.user_id)
        tenant = replica.tenants.get(user.tenant_id) if user is not None else None
        if user is None or not user.active or tenant is None:
            raise InvalidApiKey
        self.uses.api_keys[live.id] = now
        cached = self._key_callers.get(digest)
        # The replica replaces the entries that change, so unchanged entries give the same caller.
        if cached is None or cached[0] is not live or cached[1] is not user or cached[2] is not tenant:
            caller = self._user(user, tenant, kind=CallerKind.API_KEY, api_key_id=live.id, scopes=live.scopes)
            cached = self._key_callers[digest] = (live, user, tenant, caller)
            if len(self._key_callers) > _MAX_CACHED_CREDENTIALS:
                self._key_callers.popitem(last=False)
        return cached[3]

    def _by_scim_token(self, token: str) -> Caller:
        live = self._replica.scim_tokens.get(tokens.digest(token))
        if live is None or live.tenant_id not in self._replica.tenants:
            raise InvalidBearerToken
        now = time.time()
        if live.expires_at is not None and live.expires_at <= now:
            raise InvalidBearerToken
        self.uses.scim_tokens[live.id] = now
        return Caller(
            kind=CallerKind.SCIM,
            tenant_id=live.tenant_id,
            scim_token_id=live.id,
            # Entra ID needs at least 25 requests a second, which exceeds the tier `standard`.
            rate_limit_tier="premium",
            rate_key=f"scim:{live.id}",
        )

    def _by_outpost_token(self, token: str) -> Caller:
        try:
            caller = self._outposts.caller(token, self._replica.outpost_trust)
        except Unauthenticated:
            raise InvalidBearerToken from None
        if caller.tenant_id not in self._replica.tenants:
            raise InvalidBearerToken
        return caller

    def _by_token(self, token: str, path: str) -> Caller:
        return self._of_verified(self._verify(token, path))

    def _of_verified(self, verified: VerifiedToken) -> Caller:
        if verified.kind is CallerKind.OAUTH_CLIENT:
            return self._client(verified)
        if verified.session_id in self._replica.revoked or verified.grant_id in self._replica.revoked:
            raise InvalidBearerToken
        user = self._replica.users.get(verified.subject)
        tenant = self._replica.tenants.get(user.tenant_id) if user is not None else None
        if user is None or not user.active or tenant is None:
            raise InvalidBearerToken
        if verified.issued_at + tenant.session_seconds <= time.time():
            raise InvalidBearerToken
        client = None
        if verified.kind is CallerKind.APPLICATION and verified.client_id is not None:
            client = self._replica.clients.get(verified.client_id)
        return self._user(
            user,
            tenant,
            kind=verified.kind,
            session_id=verified.session_id,
            mfa_at=verified.mfa_at,
            scopes=_application_scopes(verified, client, tenant.id),
            client_id=verified.client_id,
            grant_id=verified.grant_id,
            # An organization's administrators register its applications, and need not be operators.
            may_operate=client is None or client.tenant_id is None,
        )

    def _user(
        self,
        user: LiveUser,
        tenant: LiveTenant,
        *,
        kind: CallerKind,
        scopes: frozenset[str] | None,
        api_key_id: UUID | None = None,
        session_id: UUID | None = None,
        mfa_at: float | None = None,
        client_id: UUID | None = None,
        grant_id: UUID | None = None,
        may_operate: bool = True,
    ) -> Caller:
        """Return the user as a caller with the user's current rights. The rights at the time when a token was issued do
        not matter."""
        policy = tenant.second_factor
        return Caller(
            kind=kind,
            tenant_id=user.tenant_id,
            user_id=user.id,
            api_key_id=api_key_id,
            client_id=client_id,
            session_id=session_id,
            grant_id=grant_id,
            email=emails.visible_address(user.email),
            role=user.role,
            operator=user.operator and may_operate,
            scopes=scopes,
            groups=user.groups,
            rate_key=f"user:{user.id}",
            custom_rate_limit_rpm=tenant.custom_rate_limit_rpm,
            scan_rate_limit_rpm=tenant.scan_rate_limit_rpm,
            mfa_at=mfa_at,
            mfa_required=policy.sensitive and policy.asks(user.methods, user.created_at, time.time()),
            has_factor=not policy.methods.isdisjoint(user.methods),
            mfa_ttl_seconds=policy.ttl_seconds,
        )

    def _client(self, verified: VerifiedToken) -> Caller:
        if not self._client_good(verified.subject):
            raise InvalidBearerToken
        live = self._replica.clients.get(verified.subject)
        tenant = None if verified.tenant_id is None else self._replica.tenants.get(verified.tenant_id)
        if verified.tenant_id is not None and tenant is None:
            raise InvalidBearerToken
        return Caller(
            kind=CallerKind.OAUTH_CLIENT,
            tenant_id=None if verified.tenant_id is None else TenantId(verified.tenant_id),
            client_id=verified.subject,
            role=Role.USER,
            scopes=self._scopes(verified, live),
            rate_limit_tier=verified.rate_limit_tier,
            rate_key=f"oauth:{verified.subject}",
            scan_rate_limit_rpm=None if tenant is None else tenant.scan_rate_limit_rpm,
        )

    def _scopes(self, verified: VerifiedToken, live: LiveClient | None) -> frozenset[str]:
        """Return the scopes of the token, except the scopes that its client has lost since."""
        if not self._enforce_scopes:
            return SCOPES
        if live is None or verified.scopes <= live.scopes:
            return verified.scopes
        return verified.scopes & live.scopes

    def _client_good(self, client_id: UUID) -> bool:
        """Return whether the client's tokens are valid. The tokens of a deleted client remain valid, unless the
        deletion revoked them (`OAUTH_DELETE_REVOKES_TOKENS`)."""
        client = self._replica.clients.get(client_id)
        return client_id not in self._replica.revoked and (client is None or client.enabled)

    def _verify(self, token: str, path: str) -> VerifiedToken:
        """Return the claims of a token that is valid for requests to this path."""
        if self._verified_by is not self._replica.signing_keys:
            # A key may have been removed, which invalidates the tokens that were signed with it.
            self._verified.clear()
            self._verified_by = self._replica.signing_keys
        verified = self._verified.get(token)
        now = time.time()
        if verified is None:
            verified = self._verify_signature(token, path)
            self._verified[token] = verified
            if len(self._verified) > _MAX_CACHED_CREDENTIALS:
                self._verified.popitem(last=False)
        if verified.expires_at <= now:
            self._verified.pop(token, None)
            raise InvalidBearerToken
        if verified.resource is not None and not resources.covers(verified.resource, path):
            raise InvalidBearerToken
        return verified

    def _verify_signature(self, token: str, path: str) -> VerifiedToken:
        audiences = [self._issuer, *(resources.identifier(self._issuer, name) for name in resources.of_path(path))]
        try:
            claims = jwt.verify(token, self._replica.signing_keys, issuer=self._issuer, audience=audiences)
            # Tokens of other kinds, signed with the same keys, are not access tokens (RFC 8725, 3.12). They have no
            # entry in `_KINDS`.
            kind, tenant = _KINDS[claims.get("token_type")], claims.get("tid")
            application = kind is CallerKind.APPLICATION
            return VerifiedToken(
                subject=UUID(claims["sub"]),
                kind=kind,
                expires_at=float(claims["exp"]),
                tenant_id=UUID(tenant) if tenant else None,
                session_id=None if kind is CallerKind.OAUTH_CLIENT else UUID(claims["sid"]),
                scopes=frozenset(str(claims.get("scope", "")).split()) & SCOPES,
                rate_limit_tier=str(claims.get("rate_limit_tier", "standard")),
                mfa_at=claims.get("mfa_at"),
                issued_at=float(claims["iat"]),
                client_id=UUID(claims["client_id"]) if application else None,
                grant_id=UUID(claims["grant_id"]) if application else None,
                resource=resources.path_of(self._issuer, claims["aud"]),
            )
        except (Unauthenticated, KeyError, ValueError, TypeError, AttributeError):
            raise InvalidBearerToken from None


def _application_scopes(
    verified: VerifiedToken, client: LiveClient | None, tenant_id: TenantId
) -> frozenset[str] | None:
    """Return the scopes of an application's token that its client still has, or None for the token of a session. Raises
    `InvalidBearerToken` for the token of another organization's client. A token without such scopes is valid only at
    `/oauth/userinfo`, so it is refused here."""
    if verified.kind is not CallerKind.APPLICATION:
        return None
    if client is None or not client.enabled or client.tenant_id not in {None, tenant_id}:
        raise InvalidBearerToken
    scopes = verified.scopes & client.user_scopes
    if not scopes:
        raise InvalidBearerToken
    return scopes
