"""Who may call, as types for a route's signature: the 401 and 403 have happened before its first line.

    SessionUser     a person with a session token: not a key, not a client
    SessionUserStepUp  the same with a fresh second factor where one is asked for (decisions 3)
    AdminReader     admin or auditor; a client with `admin:read`
    AuditReader     the same with `audit:read`
    DlpReader       the same with `dlp:read`
    GroupReader     the same with `groups:read`
    Admin           admin; a client with `admin:write`
    GroupAdmin      the same with `groups:write`
    AdminStepUp     Admin, and for people a fresh second factor where one is asked for (decisions 3)
    ClientReader    whoever may see OAuth clients: AdminReader, and the platform-wide client; `admin:write` is enough
    ClientAdmin     whoever may change them: AdminStepUp, and the platform-wide client
    OperatorStepUp  admin with the operator mark, and a fresh second factor
    PlatformClient  the platform-wide client with `admin:write`, which the portal's jobs use; and OperatorStepUp
    ScimClient      a SCIM token; it is good under /api/scim/v2 alone, where nothing else is
    OutpostCaller   an outpost's own token; it is good under /v1/outposts alone, where nothing else is
    Scoped("..")    any caller; clients need that scope
    PersonReader    a user, by session or key; a key with scopes needs `api:read`
    PersonWriter    the same with `api:write`

A route names its caller first: dependencies are solved in that order, so 401 and 403 come before 404 and 422.
"""

import time
from collections.abc import Callable
from typing import Annotated, Any, cast

from cryptography.hazmat.primitives.serialization import Encoding
from fastapi import Depends, Request

from gatehouse.foundation import certified
from gatehouse.foundation.errors import Forbidden, Refusal, Unauthenticated
from gatehouse.foundation.identity import Caller, CallerKind, Role
from gatehouse.ingress.credentials import MissingCredential, presented
from gatehouse.ingress.protocol import shows
from gatehouse.platform.live.credentials import InvalidToken


class AdminOnly(Forbidden):
    message = "This needs an administrator."


class SessionOnly(Forbidden):
    message = "This needs a session token: sign in as the user."


class OperatorOnly(Forbidden):
    message = "This needs an operator of the platform."


class PeopleOnly(Forbidden):
    message = "This is a user's own: an OAuth client has none."


class NoTenant(Forbidden):
    message = "A platform-wide client belongs to no organization, so it has nothing to manage here."


class ScopeMissing(Forbidden):
    code = "insufficient_scope"


class ClientCertificateMissing(Unauthenticated):
    code = "client_certificate_missing"
    message = "Show the token's certificate in the TLS handshake too."


class MfaRequired(Forbidden):
    code = "mfa_required"
    message = "This needs a fresh second factor: POST /api/auth/mfa/verify, then try again."
    form = "error_message"


class EnrolmentRequired(MfaRequired):
    """There is nothing to verify yet."""

    message = (
        "This needs a second factor, and you have none: enrol one at POST /api/auth/mfa/totp or"
        " POST /api/auth/mfa/webauthn/register/begin, then try again."
    )

    def __init__(self) -> None:
        super().__init__(enrollment_required=True)


def _caller(request: Request) -> Caller:
    """What the front found: a caller, or why the credential was refused."""
    state = request.scope["state"]
    refused: Refusal | None = state.get("refused_credential")
    if refused is not None:
        raise refused
    caller = state.get("caller")
    if caller is None:
        raise MissingCredential
    return cast("Caller", caller)


def is_caller(dependency: object) -> bool:
    """Whether this is the dependency behind all of the types above: a route that has it needs a credential."""
    return dependency is _caller


def _member(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.tenant_id is None:
        raise NoTenant
    return caller


def _session_user(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.kind is not CallerKind.USER:
        raise SessionOnly
    return _member(caller)


def session_user(request: Request) -> Caller:
    """For routes that something in the body opens too. Raises what `SessionUser` does."""
    return _session_user(_caller(request))


def _session_step_up(caller: Annotated[Caller, Depends(_session_user)]) -> Caller:
    return stepped_up(caller)


def reads(scope: str) -> Callable[..., Caller]:
    """A dependency: who administers or audits the organization; a client, or a key with scopes, needs this one."""

    def check(caller: Annotated[Caller, Depends(_member)]) -> Caller:
        if caller.kind is not CallerKind.OAUTH_CLIENT and caller.role not in {Role.ADMIN, Role.AUDITOR}:
            raise AdminOnly
        return _with_scope(caller, scope)

    return check


def _is_admin(caller: Caller, scope: str = "admin:write") -> Caller:
    if caller.kind is not CallerKind.OAUTH_CLIENT and caller.role is not Role.ADMIN:
        raise AdminOnly
    return _with_scope(caller, scope)


def _admin(caller: Annotated[Caller, Depends(_member)]) -> Caller:
    return _is_admin(caller)


def _group_admin(caller: Annotated[Caller, Depends(_member)]) -> Caller:
    return _is_admin(caller, "groups:write")


def _any_admin(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    """Admins, and the platform-wide client too, which has no tenant."""
    return stepped_up(_is_admin(caller))


def _any_admin_reader(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    """Who reads OAuth clients. `admin:write` includes their management (reference 2, OAuth client)."""
    if caller.kind is not CallerKind.OAUTH_CLIENT and caller.role not in {Role.ADMIN, Role.AUDITOR}:
        raise AdminOnly
    return caller if caller.has_scope("admin:write") else _with_scope(caller, "admin:read")


def _admin_step_up(caller: Annotated[Caller, Depends(_admin)]) -> Caller:
    return stepped_up(caller)


def _operator(caller: Annotated[Caller, Depends(_admin)]) -> Caller:
    if not caller.operator:
        raise OperatorOnly
    return caller


def _operator_step_up(caller: Annotated[Caller, Depends(_operator)]) -> Caller:
    return stepped_up(caller)


def _platform_client(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if caller.kind is CallerKind.OAUTH_CLIENT and caller.tenant_id is None:
        return _with_scope(caller, "admin:write")
    if caller.operator:
        return stepped_up(_is_admin(caller))
    raise OperatorOnly


def _scim_client(caller: Annotated[Caller, Depends(_member)]) -> Caller:
    if caller.kind is not CallerKind.SCIM:
        raise InvalidToken
    return caller


def _outpost(request: Request, caller: Annotated[Caller, Depends(_member)]) -> Caller:
    if caller.kind is not CallerKind.OUTPOST:
        raise InvalidToken
    token = presented(request.state.received)
    assert token is not None
    # A token that was overheard is good on no other connection, where the listener asks for certificates.
    if not shows(request.scope, certified.shown(token).public_bytes(Encoding.DER)):
        raise ClientCertificateMissing
    return caller


def stepped_up(caller: Caller) -> Caller:
    """Raises `MfaRequired`, `EnrolmentRequired`. For routes that ask for the second factor only if the body gives a
    right, or the row is one that is protected; all others name one of the types below."""
    # A machine has no second factor: its credential is all it can show.
    if caller.kind is CallerKind.USER and caller.mfa_required and not caller.has_fresh_factor(time.time()):
        raise MfaRequired if caller.has_factor else EnrolmentRequired
    return caller


def _with_scope(caller: Caller, scope: str) -> Caller:
    if not caller.has_scope(scope):
        raise ScopeMissing(f"The credential lacks the scope {scope}.")
    return caller


def scoped(scope: str) -> Callable[..., Caller]:
    """A dependency: any caller of a tenant; a client, or a key with scopes, needs this one."""

    def check(caller: Annotated[Caller, Depends(_member)]) -> Caller:
        return _with_scope(caller, scope)

    return check


def person(scope: str) -> Callable[..., Caller]:
    """A dependency: a user of a tenant, whatever their role; a key with scopes needs this one."""

    def check(caller: Annotated[Caller, Depends(_member)]) -> Caller:
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

#: what FastAPI's OpenAPI document says about a route with a caller
RESPONSES: dict[int | str, dict[str, Any]] = {
    401: {"description": "The credential is missing or not valid."},
    403: {"description": "The credential does not permit this."},
}
