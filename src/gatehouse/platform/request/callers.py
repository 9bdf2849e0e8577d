"""Types of callers for the signatures of routes. The errors 401 and 403 are raised before the first line of the route.

    SessionUser     a user with a session token; neither an API key nor an OAuth client
    SessionUserStepUp  SessionUser with a fresh second factor, if the policy requires one (docs/mfa.md)
    AdminReader     an admin or auditor; a client with `admin:read`
    AuditReader     an admin or auditor; a client with `audit:read`
    DlpReader       an admin or auditor; a client with `dlp:read`
    GroupReader     an admin or auditor; a client with `groups:read`
    Admin           an admin; a client with `admin:write`
    GroupAdmin      an admin; a client with `groups:write`
    AdminStepUp     Admin; users need a fresh second factor if the policy requires one (docs/mfa.md)
    ClientReader    reads OAuth clients: AdminReader and the platform-wide client; `admin:write` is sufficient
    ClientAdmin     changes OAuth clients: AdminStepUp and the platform-wide client
    OperatorStepUp  an admin with the operator flag and a fresh second factor
    PlatformClient  the platform-wide client with `admin:write`, which the portal's jobs use; or OperatorStepUp
    ScimClient      a SCIM token, valid only under /api/scim/v2, which accepts no other credential
    OutpostCaller   an outpost's token, valid only under /v1/outposts, which accepts no other credential
    ApiReader       any caller; a client, or a key with scopes, needs `api:read`
    PersonReader    a user with a session or key; a key with scopes needs `api:read`
    PersonWriter    a user with a session or key; a key with scopes needs `api:write`

A route declares its caller first. FastAPI resolves dependencies in order, so 401 and 403 come before 404 and 422.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, cast

from cryptography.hazmat.primitives.serialization import Encoding
from fastapi import Depends, Request

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.errors import Forbidden, Refusal, Unauthenticated
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.ingress.credentials import MissingCredential, credential_of
from gatehouse.ingress.protocol import has_certificate
from gatehouse.platform.live.credentials import InvalidBearerToken


class AdminOnly(Forbidden):
    message = "This operation requires an administrator."


class SessionOnly(Forbidden):
    message = "This operation requires a session token. Sign in as the user."


class OperatorOnly(Forbidden):
    message = "This operation requires an operator of the platform."


class PeopleOnly(Forbidden):
    message = "This resource belongs to a user, so OAuth clients cannot use it."


class CallerWithoutTenant(Forbidden):
    message = "A platform-wide client belongs to no organization, so it cannot use this operation."


#: Kinds of callers for whom sensitive operations require a second factor.
_WITH_SECOND_FACTOR: Final = frozenset({CallerKind.USER, CallerKind.APPLICATION})


class CallerLacksScope(Forbidden):
    code = "insufficient_scope"


class ClientCertificateMissing(Unauthenticated):
    code = "client_certificate_missing"
    message = "Present the token's certificate in the TLS handshake too."


class MfaRequired(Forbidden):
    code = "mfa_required"
    message = (
        "This operation requires a fresh second factor. Verify one with POST /api/auth/mfa/verify, then try again."
    )
    error_format = "error_message"


class EnrolmentRequired(MfaRequired):
    """The operation requires a second factor, and the user has none to verify."""

    message = (
        "This operation requires a second factor, and you have none. Enrol one with POST /api/auth/mfa/totp or"
        " POST /api/auth/mfa/webauthn/register/begin, then try again."
    )

    def __init__(self) -> None:
        super().__init__(enrollment_required=True)


async def _caller(request: Request) -> Caller:
    """Return the caller that admission identified. Raises the refusal of a bad credential, or `MissingCredential`."""
    state = request.scope["state"]
    refusal: Refusal | None = state.get("refused_credential")
    if refusal is not None:
        raise refusal
    caller = state.get("caller")
    if caller is None:
        raise MissingCredential
    return cast("Caller", caller)


def is_caller(dependency: object) -> bool:
    """Return whether this is the dependency on which all caller types are based. A route that has it needs a
    credential."""
    return dependency is _caller


async def _member(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.tenant_id is None:
        raise CallerWithoutTenant
    return caller


async def _session_user(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.kind is not CallerKind.USER:
        raise SessionOnly
    return await _member(caller)


async def authenticated(request: Request) -> Caller:
    """Return the caller of any kind. Raises the refusal of a bad credential, or `MissingCredential`."""
    return await _caller(request)


async def session_user(request: Request) -> Caller:
    """Return the caller as `SessionUser` does, for routes that alternatively accept a token in the body. Raises the
    same errors."""
    return await _session_user(await _caller(request))


async def _session_step_up(caller: Annotated[Caller, Depends(_session_user)]) -> Caller:
    return stepped_up(caller)


def reads(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that admits admins and auditors. A client, or a key with scopes, needs `scope`."""

    async def check(caller: Annotated[Caller, Depends(_member)]) -> Caller:
        if caller.kind is not CallerKind.OAUTH_CLIENT and caller.role not in {Role.ADMIN, Role.AUDITOR}:
            raise AdminOnly
        return _with_scope(caller, scope)

    return check


def _is_admin(caller: Caller, scope: str = "admin:write") -> Caller:
    if caller.kind is not CallerKind.OAUTH_CLIENT and caller.role is not Role.ADMIN:
        raise AdminOnly
    return _with_scope(caller, scope)


async def _admin(caller: Annotated[Caller, Depends(_member)]) -> Caller:
    return _is_admin(caller)


async def _group_admin(caller: Annotated[Caller, Depends(_member)]) -> Caller:
    return _is_admin(caller, "groups:write")


async def _any_admin(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    """Admit admins, and the platform-wide client, which has no tenant."""
    return stepped_up(_is_admin(caller))


async def _any_admin_reader(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    """Admit readers of OAuth clients. `admin:write` is sufficient, because managing clients includes reading them."""
    if caller.kind is not CallerKind.OAUTH_CLIENT and caller.role not in {Role.ADMIN, Role.AUDITOR}:
        raise AdminOnly
    return caller if caller.has_scope("admin:write") else _with_scope(caller, "admin:read")


async def _admin_step_up(caller: Annotated[Caller, Depends(_admin)]) -> Caller:
    return stepped_up(caller)


async def _operator(caller: Annotated[Caller, Depends(_admin)]) -> Caller:
    if not caller.operator:
        raise OperatorOnly
    return caller


async def _operator_step_up(caller: Annotated[Caller, Depends(_operator)]) -> Caller:
    return stepped_up(caller)


async def _platform_client(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.kind is CallerKind.OAUTH_CLIENT and caller.tenant_id is None:
        return _with_scope(caller, "admin:write")
    if caller.operator:
        return stepped_up(_is_admin(caller))
    raise OperatorOnly


async def _scim_client(caller: Annotated[Caller, Depends(_member)]) -> Caller:
    if caller.kind is not CallerKind.SCIM:
        raise InvalidBearerToken
    return caller


async def _outpost(request: Request, caller: Annotated[Caller, Depends(_member)]) -> Caller:
    if caller.kind is not CallerKind.OUTPOST:
        raise InvalidBearerToken
    token = credential_of(request.state.received)
    assert token is not None
    # If the listener requests certificates, a stolen token is useless on a connection without its certificate.
    if not has_certificate(request.scope, x5c.certificate_of(token).public_bytes(Encoding.DER)):
        raise ClientCertificateMissing
    return caller


def stepped_up(caller: Caller) -> Caller:
    """Return the caller if its second factor is fresh or not required. Raises `MfaRequired` and `EnrolmentRequired`.
    This is for routes that require a second factor only if the body grants a right or the row is protected. Other
    routes declare one of the types below."""
    # A machine has no second factor. An application has the factor that the user passed at the sign-in.
    if caller.kind in _WITH_SECOND_FACTOR and caller.mfa_required and not caller.has_fresh_factor(time.time()):
        raise MfaRequired if caller.has_factor else EnrolmentRequired
    return caller


def _with_scope(caller: Caller, scope: str) -> Caller:
    if not caller.has_scope(scope):
        raise CallerLacksScope(f"The credential lacks the scope {scope}.")
    return caller


def scoped(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that admits any caller of a tenant. A client, or a key with scopes, needs `scope`."""

    async def check(caller: Annotated[Caller, Depends(_member)]) -> Caller:
        return _with_scope(caller, scope)

    return check


def person(scope: str) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that admits users of a tenant, whatever their role. A key with scopes needs `scope`."""

    async def check(caller: Annotated[Caller, Depends(_member)]) -> Caller:
        if caller.user_id is None:
            raise PeopleOnly
        return _with_scope(caller, scope)

    return check


SessionUser = Annotated[Caller, Depends(_session_user)]
SessionUserStepUp = Annotated[Caller, Depends(_session_step_up)]
AdminReader = Annotated[Caller, Depends(reads("admin:read"))]
AuditReader = Annotated[Caller, Depends(reads("audit:read"))]
DlpReader = Annotated[Caller, Depends(reads("dlp:read"))]
GroupReader = Annotated[Caller, Depends(reads("groups:read"))]
Admin = Annotated[Caller, Depends(_admin)]
GroupAdmin = Annotated[Caller, Depends(_group_admin)]
AdminStepUp = Annotated[Caller, Depends(_admin_step_up)]
ClientReader = Annotated[Caller, Depends(_any_admin_reader)]
ClientAdmin = Annotated[Caller, Depends(_any_admin)]
OperatorStepUp = Annotated[Caller, Depends(_operator_step_up)]
PlatformClient = Annotated[Caller, Depends(_platform_client)]
ScimClient = Annotated[Caller, Depends(_scim_client)]
OutpostCaller = Annotated[Caller, Depends(_outpost)]
ApiReader = Annotated[Caller, Depends(scoped("api:read"))]
PersonReader = Annotated[Caller, Depends(person("api:read"))]
PersonWriter = Annotated[Caller, Depends(person("api:write"))]

#: Responses of a route with a caller, for the OpenAPI document.
RESPONSES: dict[int | str, dict[str, Any]] = {
    401: {"description": "The credential is missing or not valid."},
    403: {"description": "The credential does not permit this operation."},
}
