"""Authorization codes: issued at `/oauth/authorize`, exchanged once for tokens (RFC 6749, 4.1; RFC 7636; OpenID Connect
Core, 3.1).

    issued -> used      exchanged within a minute, by its client, with its redirect URI and its code verifier
    used   -> revoked   exchanged again: the code was copied, so its access token is revoked too

The access token acts for the user within the token's scopes, until the session ends. `/oauth/userinfo` finds it by its
digest.
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from starlette.requests import Request

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.revoking import revoke
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.tokens import claims
from gatehouse.platform.access.tokens.errors import InvalidGrant
from gatehouse.platform.access.tokens.schemas import PersonTokens
from gatehouse.platform.access.tokens.table import AuthorizationCodeRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

CODE_LIFETIME: Final = timedelta(seconds=60)
ACCESS_TOKEN_SECONDS: Final = 900
#: Time for which a revoked grant is refused. It exceeds the maximum run time of a batch, which one of the tokens may
#: have created.
_REVOCATION_SECONDS: Final = 25 * 3600


class CodeGrant(NamedTuple):
    """The client, redirect URI, challenge, nonce and scope of a code."""

    client_id: UUID
    redirect_uri: str
    challenge: str
    nonce: str | None
    scope: str


class CodeExchange(NamedTuple):
    """A request of an authenticated client to exchange a code."""

    client_id: UUID
    code: str
    redirect_uri: str
    verifier: str
    #: the resource for which the token is valid; None for this platform
    audience: str | None = None


def issue(change: Change, session: SessionRow, grant: CodeGrant) -> str:
    """Issue a code for a user's open session."""
    minted, now = tokens.mint_token("gac_"), utc_now()
    row = AuthorizationCodeRow(
        digest=minted.digest,
        tenant_id=session.tenant_id,
        session_id=session.id,
        user_id=session.user_id,
        created_at=now,
        expires_at=now + CODE_LIFETIME,
        used_at=None,
        access_digest=None,
        access_expires_at=None,
        **grant._asdict(),
    )
    change.session.add(row)
    return minted.plaintext


async def redeem(request: Request, host: Host, exchange: CodeExchange, tenant_id: TenantId | None) -> PersonTokens:
    """Exchange a code for tokens. `tenant_id` is the tenant of the code; None if the code does not exist. Raises
    `InvalidGrant`."""
    person_tokens: PersonTokens | None = None
    if tenant_id is not None:
        async with changing(request, host, tenant_id) as change:
            person_tokens = await _exchange(change, host, exchange)
    # Raised only after the commit, which may have revoked an access token.
    if person_tokens is None:
        raise InvalidGrant
    return person_tokens


async def _exchange(change: Change, host: Host, exchange: CodeExchange) -> PersonTokens | None:
    # Locks the row, so that the second of two concurrent requests sees that the code is used.
    row = await change.session.get(AuthorizationCodeRow, tokens.digest(exchange.code), with_for_update=True)
    if row is None or not _matches(row, exchange):
        return None
    if row.used_at is not None:
        row.access_digest = row.access_expires_at = None
        await revoke(change, _grant_id(row), "grant", _REVOCATION_SECONDS)
        change.record("oauth_code.reused", "oauth_client", row.client_id, outcome="failure", user_id=row.user_id)
        return None
    session = await change.session.get(SessionRow, row.session_id)
    user = await change.session.get(UserRow, row.user_id)
    if not row.is_valid() or session is None or user is None or not session.open() or not user.is_active:
        return None
    access_token, now = await _access_token(host, row, session, exchange.audience), utc_now()
    row.used_at = now
    if exchange.audience is None:
        # `/oauth/userinfo` does not accept a token for a resource.
        row.access_digest = tokens.digest(access_token)
        row.access_expires_at = now + timedelta(seconds=ACCESS_TOKEN_SECONDS)
    id_claims = await claims.claims_for(change.session, user, row.scope.split())
    id_claims |= {"auth_time": int(session.created_at.timestamp()), "amr": session.amr, "sid": str(session.id)}
    if row.nonce is not None:
        id_claims["nonce"] = row.nonce
    return PersonTokens(
        access_token=access_token,
        token_type="Bearer",  # noqa: S106 - the scheme's name
        expires_in=ACCESS_TOKEN_SECONDS,
        scope=row.scope,
        id_token=await host.signer.sign(id_claims, ACCESS_TOKEN_SECONDS, audience=str(row.client_id)),
    )


async def _access_token(host: Host, row: AuthorizationCodeRow, session: SessionRow, audience: str | None) -> str:
    claims: dict[str, Any] = {
        "sub": str(row.user_id),
        "sid": str(session.id),
        "token_type": "application",
        "client_id": str(row.client_id),
        "grant_id": str(_grant_id(row)),
        "scope": row.scope,
    }
    if session.mfa_at is not None:
        claims["mfa_at"] = int(session.mfa_at.timestamp())
    return await host.signer.sign(claims, ACCESS_TOKEN_SECONDS, audience=audience)


def _grant_id(row: AuthorizationCodeRow) -> UUID:
    """Return the id by which the access token of a code is revoked."""
    return UUID(bytes=row.digest[:16])


def _matches(row: AuthorizationCodeRow, exchange: CodeExchange) -> bool:
    """Return whether client, redirect URI and code verifier match those that the code was issued for."""
    challenge = urlsafe_b64encode(hashlib.sha256(exchange.verifier.encode()).digest()).rstrip(b"=").decode()
    return (
        row.client_id == exchange.client_id
        and row.redirect_uri == exchange.redirect_uri
        and hmac.compare_digest(row.challenge, challenge)
    )
