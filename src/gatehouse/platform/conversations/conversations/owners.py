"""Types of callers for the routes of conversations: users with a session or an API key.

OwnerReader   a user; a key with scopes needs `api:read`
OwnerWriter   a user; a key with scopes needs `api:write`
OwnerChatter  a user; a key with scopes needs `chat:write`, for routes that call a model
"""

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import Depends

from gatehouse.foundation.identity import Caller
from gatehouse.platform.conversations.conversations.errors import UsersOnly
from gatehouse.platform.request.callers import scoped


def _user(scope: str) -> Callable[..., Awaitable[Caller]]:
    async def check(caller: Annotated[Caller, Depends(scoped(scope))]) -> Caller:
        owner_id(caller)
        return caller

    return check


def owner_id(caller: Caller) -> UUID:
    """Return the id of the calling user. Raises `UsersOnly` for other callers, such as OAuth clients."""
    if caller.user_id is None:
        raise UsersOnly
    return caller.user_id


OwnerReader = Annotated[Caller, Depends(_user("api:read"))]
OwnerWriter = Annotated[Caller, Depends(_user("api:write"))]
OwnerChatter = Annotated[Caller, Depends(_user("chat:write"))]
