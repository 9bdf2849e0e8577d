"""Checks that a caller gains no rights by creating or changing a user."""

from typing import Final

from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.access.users.errors import CannotGrant, OperatorsOnly
from gatehouse.platform.access.users.table import UserRow

_USER_SCOPES: Final = frozenset({"api:read", "api:write", "chat:write"})

#: Scopes that correspond to a role; None if no scopes are sufficient. A credential that lacks one of them cannot create
#: a user with the role, because it would get the user's invitation or password.
_REQUIRED_SCOPES: Final[dict[str, frozenset[str] | None]] = {
    "admin": None,
    "auditor": _USER_SCOPES | {"admin:read", "audit:read", "dlp:read"},
    "user": _USER_SCOPES,
}


def require_may_grant(caller: Caller, role: str) -> None:
    """Require that the caller may grant the role. Administrators may grant every role. Machines, and keys with scopes,
    may grant only roles within their scopes.

    Raises `CannotGrant`.
    """
    if caller.kind is not CallerKind.OAUTH_CLIENT and caller.scopes is None:
        return
    required = _REQUIRED_SCOPES[role]
    if required is None or not required <= (caller.scopes or frozenset()):
        raise CannotGrant


def require_may_change(caller: Caller, user: UserRow) -> None:
    """Require that the caller may change the user. A caller who changes a user's address or password can become that
    user, and so must be able to grant the user's rights.

    Raises `CannotGrant`, `OperatorsOnly`.
    """
    require_may_grant(caller, user.role)
    require_may_remove(caller, user)


def require_may_remove(caller: Caller, user: UserRow) -> None:
    """Require that the caller may delete the user. Raises `OperatorsOnly`."""
    if user.operator and not caller.operator:
        raise OperatorsOnly
