"""Who calls about conversations: people, by a session or an API key of theirs.

OwnerReader   a person; a key with scopes needs `api:read`
OwnerWriter   the same with `api:write`
OwnerChatter  the same with `chat:write`: what calls a model
"""

from collections.abc import Callable
from typing import Annotated
from uuid import UUID

from fastapi import Depends

from gatehouse.foundation.identity import Caller
from gatehouse.platform.callers import scoped
from gatehouse.platform.conversations.conversations.errors import PeopleOnly


def _person(scope: str) -> Callable[..., Caller]:
    def check(caller: Annotated[Caller, Depends(scoped(scope))]) -> Caller:
        owner_id(caller)
        return caller

    return check


def owner_id(caller: Caller) -> UUID:
    """Raises `PeopleOnly`."""
    if caller.user_id is None:
        raise PeopleOnly
    return caller.user_id


OwnerReader = Annotated[Caller, Depends(_person("api:read"))]
OwnerWriter = Annotated[Caller, Depends(_person("api:write"))]
OwnerChatter = Annotated[Caller, Depends(_person("chat:write"))]
