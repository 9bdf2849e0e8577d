"""Nobody gains rights by making or changing a user (decisions 2)."""

from typing import Final

from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.access.users.errors import CannotGrant, OperatorsOnly
from gatehouse.platform.access.users.table import UserRow

_USER: Final = frozenset({"api:read", "api:write", "chat:write"})

#: What a role may do, in scopes: a credential that lacks one of them cannot make such a user, whose invitation or
#: password it would hold. None where no scopes are enough.
_NEEDED: Final[dict[str, frozenset[str] | None]] = {
    "admin": None,
    "auditor": _USER | {"admin:read", "audit:read", "dlp:read"},
    "user": _USER,
}


def may_grant(caller: Caller, role: str) -> None:
    """Administrators grant every role; machines, and keys that were scoped down, none that is more than theirs.

    Raises `CannotGrant`.
    """
    if caller.kind is not CallerKind.OAUTH_CLIENT and caller.scopes is None:
        return
    needed = _NEEDED[role]
    if needed is None or not needed <= (caller.scopes or frozenset()):
        raise CannotGrant


def may_change(caller: Caller, user: UserRow) -> None:
    """Who can change a user's address or password can become that user, so it takes the right to grant what they have.

    Raises `CannotGrant`, `OperatorsOnly`.
    """
    may_grant(caller, user.role)
    may_remove(caller, user)


def may_remove(caller: Caller, user: UserRow) -> None:
    """Raises `OperatorsOnly`."""
    if user.operator and not caller.operator:
        raise OperatorsOnly
