"""Who calls, answered from the replica: a dictionary look-up for a key, a cached verification for a token."""

import time
from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import Received
from gatehouse.foundation import emails, jwt, tokens
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import SCOPES, Caller, CallerKind, Role, TenantId
from gatehouse.ingress.credentials import ExpiredApiKey, InvalidApiKey, MissingCredential, presented
from gatehouse.platform.live import outposts
from gatehouse.platform.live.outposts import OutpostTokens
from gatehouse.platform.live.state import LiveClient, LiveKey, LiveTenant, LiveUser, Replica
from gatehouse.platform.live.uses import RecentUses


class InvalidToken(Unauthenticated):
    code = "invalid_token"
    message = "The token is not valid, has expired, or was revoked."


#: Where SCIM tokens are good, and nothing else is (reference 1, Authentication).
PROVISIONING: Final = "/api/scim/v2"

#: The same of outposts' tokens.
OUTPOSTS: Final = "/v1/outposts"

#: Verified tokens, and callers made, remembered at most: verifying a signature costs a hundred times a look-up.
_REMEMBERED: Final = 20_000


class Verified(msgspec.Struct, frozen=True, gc=False):
    """A token whose signature, issuer and times were good. `subject` is a user's or a client's id."""

    subject: UUID
    m2m: bool
    expires_at: float
    tenant_id: UUID | None
    session_id: UUID | None
    scopes: frozenset[str]
    rate_limit_tier: str
    mfa_at: float | None
    issued_at: float


class LiveCredentials:
    """The engine's `Credentials`, and administration's. `issuer` and `audience` are what tokens must name."""

    def __init__(self, replica: Replica, *, issuer: str, enforce_scopes: bool) -> None:
        self._replica = replica
        self._issuer = issuer
        self._enforce_scopes = enforce_scopes
        self._verified: OrderedDict[str, Verified] = OrderedDict()
        #: callers by their key's digest, with the entries that they were made of
        self._made: OrderedDict[bytes, tuple[LiveKey, LiveUser, LiveTenant, Caller]] = OrderedDict()
        self._outposts = OutpostTokens(issuer)
        self.uses = RecentUses()
        #: the keys that tokens were verified with
        self._verified_by = replica.signing_keys

    def identify(self, received: Received) -> Caller:
        credential = presented(received)
        if credential is None:
            raise MissingCredential
        if received.path.startswith(PROVISIONING):
            return self._by_scim_token(credential)
        if received.path.startswith(OUTPOSTS):
            return self._by_outpost_token(credential)
        if credential.startswith("gk_"):
            return self._by_key(credential)
        if credential.count(".") == 2:
            return self._by_token(credential)
        raise InvalidApiKey

    def still_good(self, caller: Caller) -> bool:
        replica = self._replica
        if caller.tenant_id is not None and caller.tenant_id not in replica.tenants:
            return False
        if caller.kind is CallerKind.OUTPOST:
            return outposts.still_good(caller, replica.outpost_trust)
        if caller.kind is CallerKind.OAUTH_CLIENT:
            assert caller.client_id is not None
            return self._client_good(caller.client_id)
        user = replica.users.get(caller.user_id) if caller.user_id else None
        if user is None or not user.active:
            return False
        if caller.api_key_id is not None:
            digest = replica.key_digests.get(caller.api_key_id)
            return digest is not None and replica.keys[digest].usable(time.time())
        return caller.session_id not in replica.revoked

    def _by_key(self, key: str) -> Caller:
        replica = self._replica
        digest = tokens.digest(key)
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
        made = self._made.get(digest)
        # The replica replaces what changes: the very same entries make the very same caller.
        if made is None or made[0] is not live or made[1] is not user or made[2] is not tenant:
            caller = self._user(user, tenant, kind=CallerKind.API_KEY, api_key_id=live.id, scopes=live.scopes)
            made = self._made[digest] = (live, user, tenant, caller)
            if len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)
        return made[3]

    def _by_scim_token(self, token: str) -> Caller:
        live = self._replica.scim_tokens.get(tokens.digest(token))
        if live is None or live.tenant_id not in self._replica.tenants:
            raise InvalidToken
        now = time.time()
        if live.expires_at is not None and live.expires_at <= now:
            raise InvalidToken
        self.uses.scim_tokens[live.id] = now
        return Caller(
            kind=CallerKind.SCIM,
            tenant_id=live.tenant_id,
            scim_token_id=live.id,
            # Entra ID asks for 25 requests a second and more, which is beyond `standard`.
            rate_limit_tier="premium",
            rate_key=f"scim:{live.id}",
        )

    def _by_outpost_token(self, token: str) -> Caller:
        try:
            caller = self._outposts.caller(token, self._replica.outpost_trust)
        except Unauthenticated:
            raise InvalidToken from None
        if caller.tenant_id not in self._replica.tenants:
            raise InvalidToken
        return caller

    def _by_token(self, token: str) -> Caller:
        verified = self._verify(token)
        if verified.m2m:
            return self._client(verified)
        if verified.session_id in self._replica.revoked:
            raise InvalidToken
        user = self._replica.users.get(verified.subject)
        tenant = self._replica.tenants.get(user.tenant_id) if user is not None else None
        if user is None or not user.active or tenant is None:
            raise InvalidToken
        if verified.issued_at + tenant.session_seconds <= time.time():
            raise InvalidToken
        return self._user(
            user, tenant, kind=CallerKind.USER, session_id=verified.session_id, mfa_at=verified.mfa_at, scopes=None
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
    ) -> Caller:
        """The caller that this user is now: rights are the user's of this moment, not of when the token was made."""
        asked = tenant.second_factor
        return Caller(
            kind=kind,
            tenant_id=user.tenant_id,
            user_id=user.id,
            api_key_id=api_key_id,
            session_id=session_id,
            email=emails.shown(user.email),
            role=user.role,
            operator=user.operator,
            scopes=scopes,
            groups=user.groups,
            rate_key=f"user:{user.id}",
            custom_rate_limit_rpm=tenant.custom_rate_limit_rpm,
            scan_rate_limit_rpm=tenant.scan_rate_limit_rpm,
            mfa_at=mfa_at,
            mfa_required=asked.sensitive and asked.asks(user.methods, user.created_at, time.time()),
            has_factor=not asked.methods.isdisjoint(user.methods),
            mfa_ttl_seconds=asked.ttl_seconds,
        )

    def _client(self, verified: Verified) -> Caller:
        if not self._client_good(verified.subject):
            raise InvalidToken
        live = self._replica.clients.get(verified.subject)
        tenant = None if verified.tenant_id is None else self._replica.tenants.get(verified.tenant_id)
        if verified.tenant_id is not None and tenant is None:
            raise InvalidToken
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

    def _scopes(self, verified: Verified, live: LiveClient | None) -> frozenset[str]:
        """What the token says, less what its client has lost since."""
        if not self._enforce_scopes:
            return SCOPES
        if live is None or verified.scopes <= live.scopes:
            return verified.scopes
        return verified.scopes & live.scopes

    def _client_good(self, client_id: UUID) -> bool:
        """A deleted client's tokens live on unless its deletion revoked them (`OAUTH_DELETE_REVOKES_TOKENS`)."""
        client = self._replica.clients.get(client_id)
        return client_id not in self._replica.revoked and (client is None or client.enabled)

    def _verify(self, token: str) -> Verified:
        if self._verified_by is not self._replica.signing_keys:
            # A key may be gone, and with it whatever it has signed.
            self._verified.clear()
            self._verified_by = self._replica.signing_keys
        known = self._verified.get(token)
        now = time.time()
        if known is None:
            known = self._verify_anew(token)
            self._verified[token] = known
            if len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)
        if known.expires_at <= now:
            self._verified.pop(token, None)
            raise InvalidToken
        return known

    def _verify_anew(self, token: str) -> Verified:
        try:
            claims = jwt.verify(token, self._replica.signing_keys, issuer=self._issuer, audience=self._issuer)
            kind, tenant = claims.get("token_type"), claims.get("tid")
            # Whatever else is signed with these keys (RFC 8725, 3.12): it opens nothing here.
            if kind not in {None, "m2m"}:
                raise InvalidToken
            return Verified(
                subject=UUID(claims["sub"]),
                m2m=kind == "m2m",
                expires_at=float(claims["exp"]),
                tenant_id=UUID(tenant) if tenant else None,
                session_id=UUID(claims["sid"]) if kind is None else None,
                scopes=frozenset(str(claims.get("scope", "")).split()) & SCOPES,
                rate_limit_tier=str(claims.get("rate_limit_tier", "standard")),
                mfa_at=claims.get("mfa_at"),
                issued_at=float(claims["iat"]),
            )
        except (Unauthenticated, KeyError, ValueError, TypeError, AttributeError):
            raise InvalidToken from None
