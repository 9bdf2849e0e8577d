"""Authorization codes: issued when a person comes to `/oauth/authorize`, traded in once for their tokens (RFC 6749,
4.1; RFC 7636; OpenID Connect Core, 3.1).

    issued -> used      within a minute, by the client, for the redirect URI and the challenge that it was issued for
    used   -> revoked   a second time: the code was copied, so what it was traded for ends too
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from starlette.requests import Request

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access.sessions.table import SessionRow
from gatehouse.platform.access.tokens import claims
from gatehouse.platform.access.tokens.errors import InvalidGrant
from gatehouse.platform.access.tokens.schemas import PersonTokens
from gatehouse.platform.access.tokens.table import AuthorizationCodeRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing

CODE_LIFETIME: Final = timedelta(seconds=60)
ACCESS_SECONDS: Final = 900


class Wanted(NamedTuple):
    """What a code is to be good for."""

    client_id: UUID
    redirect_uri: str
    challenge: str
    nonce: str | None
    scope: str


class Trade(NamedTuple):
    """A code that comes back, by a client that has proved itself."""

    client_id: UUID
    code: str
    redirect_uri: str
    verifier: str


def issue(change: Change, session: SessionRow, wanted: Wanted) -> str:
    """A code for a person's open session."""
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
        **wanted._asdict(),
    )
    change.session.add(row)
    return minted.plaintext


async def redeem(request: Request, host: Host, trade: Trade, tenant_id: TenantId | None) -> PersonTokens:
    """`tenant_id` is the code's, None where there is no such code. Raises `InvalidGrant`."""
    answer: PersonTokens | None = None
    if tenant_id is not None:
        async with changing(request, host, tenant_id) as change:
            answer = await _traded(change, host, trade)
    # Raised only now: the end of what the code was traded for before is committed.
    if answer is None:
        raise InvalidGrant
    return answer


async def _traded(change: Change, host: Host, trade: Trade) -> PersonTokens | None:
    # Locked: of two that come at once the second finds it used.
    row = await change.session.get(AuthorizationCodeRow, tokens.digest(trade.code), with_for_update=True)
    if row is None or not _belongs(row, trade):
        return None
    if row.used_at is not None:
        row.access_digest = row.access_expires_at = None
        change.record("oauth_code.reused", "oauth_client", row.client_id, outcome="failure", user_id=row.user_id)
        return None
    session = await change.session.get(SessionRow, row.session_id)
    user = await change.session.get(UserRow, row.user_id)
    if not row.fresh() or session is None or user is None or not session.open() or not user.is_active:
        return None
    access, now = tokens.mint_token("gat_"), utc_now()
    row.used_at = now
    row.access_digest = access.digest
    row.access_expires_at = now + timedelta(seconds=ACCESS_SECONDS)
    told = await claims.of(change.session, user, row.scope.split())
    told |= {"auth_time": int(session.created_at.timestamp()), "amr": session.amr, "sid": str(session.id)}
    if row.nonce is not None:
        told["nonce"] = row.nonce
    return PersonTokens(
        access_token=access.plaintext,
        token_type="Bearer",  # noqa: S106 - the scheme's name
        expires_in=ACCESS_SECONDS,
        scope=row.scope,
        id_token=await host.signer.sign(told, ACCESS_SECONDS, audience=str(row.client_id)),
    )


def _belongs(row: AuthorizationCodeRow, trade: Trade) -> bool:
    """Whether the code was issued to this client, for this redirect URI and the challenge that the verifier solves."""
    solved = urlsafe_b64encode(hashlib.sha256(trade.verifier.encode()).digest()).rstrip(b"=").decode()
    return (
        row.client_id == trade.client_id
        and row.redirect_uri == trade.redirect_uri
        and hmac.compare_digest(row.challenge, solved)
    )
