"""The endpoints of organization tokens."""

from uuid import UUID

from fastapi import APIRouter

from gatehouse.portal.host import TheHost
from gatehouse.portal.organizations.routes import LoadedOrg
from gatehouse.portal.request.callers import RESPONSES, AdminKey
from gatehouse.portal.request.injected import Changing
from gatehouse.portal.tokens import service
from gatehouse.portal.tokens.schemas import IssuedToken, NewToken, TokenRevocation, TokenRevoked, TokensRevoked

router = APIRouter(prefix="/v1/orgs/{org_id}/tokens", tags=["Tokens"], responses=RESPONSES)


@router.post("", status_code=201, response_model=IssuedToken)
async def issue_token(caller: AdminKey, org: LoadedOrg, host: TheHost, body: NewToken, change: Changing) -> IssuedToken:
    """Issues a token with the rights of an administrator of the organization."""
    return await service.issue(change, host.keys, host.clock, org, lifetime_seconds=body.expires_in, plan=body.plan)


@router.post("/revoke", response_model=TokensRevoked)
async def revoke_all_tokens(caller: AdminKey, org: LoadedOrg, change: Changing) -> TokensRevoked:
    """Revokes all tokens of the organization that have been issued until now. They are refused after this response."""
    revoked_before = service.revoke_all(change, org)
    return TokensRevoked(
        org_id=org.id, tokens_revoked_before=revoked_before, message="All tokens issued until now are refused."
    )


@router.post(
    "/revoke/{jti}",
    response_model=TokenRevoked,
    responses={
        404: {"description": "No token of the organization has this `jti`."},
        409: {"description": "The token has already been revoked."},
    },
)
async def revoke_token(caller: AdminKey, jti: UUID, body: TokenRevocation, change: Changing) -> TokenRevoked:
    """Revokes one token. It is refused after this response. If the token was refreshed, its successor is revoked, and
    the response contains the `jti` of the successor."""
    row = await service.revoke_issued(change, str(jti), body.reason)
    return TokenRevoked(
        jti=row.jti, org_id=row.org_id, revoked_at=row.revoked_at, reason=row.reason, message="The token is refused."
    )
