"""Callers that are stored for calls which are made later, such as the lines of a batch."""

from uuid import UUID

import msgspec

from gatehouse.foundation.identity import Caller, CallerKind


class StoredCaller(msgspec.Struct, frozen=True, kw_only=True):
    """The credential of a caller, without its secret. `LiveCredentials.restore` returns the caller with their current
    rights."""

    kind: CallerKind
    tenant_id: UUID
    user_id: UUID | None = None
    api_key_id: UUID | None = None
    client_id: UUID | None = None
    session_id: UUID | None = None
    grant_id: UUID | None = None
    #: scopes of the token; None for a session or an API key
    scopes: frozenset[str] | None = None
    rate_limit_tier: str = "standard"

    @classmethod
    def of(cls, caller: Caller) -> "StoredCaller":
        assert caller.tenant_id is not None
        return cls(
            kind=caller.kind,
            tenant_id=caller.tenant_id,
            user_id=caller.user_id,
            api_key_id=caller.api_key_id,
            client_id=caller.client_id,
            session_id=caller.session_id,
            grant_id=caller.grant_id,
            scopes=None if caller.api_key_id is not None else caller.scopes,
            rate_limit_tier=caller.rate_limit_tier,
        )
