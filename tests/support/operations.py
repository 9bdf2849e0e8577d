"""Every operation of the OpenAPI document, and who it is for: what tests over all of them run through."""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from gatehouse.foundation.settings import Settings
from gatehouse.platform.app import administration

#: method and path's template
Operation = tuple[str, str]

DOCUMENT: Final[dict[str, Any]] = administration(Settings())[0].openapi()
OPERATIONS: Final[list[Operation]] = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if method != "parameters"
]

#: Open to everybody by contract (reference 1, Authentication, 6), or their own credential is in the body.
OPEN: Final = {
    "/api/auth/login", "/api/auth/register", "/api/auth/refresh", "/api/auth/password/reset", "/oauth/token",
    "/oauth/authorize", "/api/saml/metadata", "/api/saml/login", "/api/saml/acs", "/api/saml/slo",
    "/api/conversations/shared/{token}", "/.well-known/jwks.json", "/.well-known/openid-configuration", "/health",
    "/api/health/live", "/api/health/ready", "/api/health/startup", "/metrics",
}  # fmt: skip
#: A person's session, or the token of a sign-in that lacks its second factor, which is in the body.
_SECOND_FACTOR: Final = {
    "/api/auth/mfa/verify", "/api/auth/mfa/totp", "/api/auth/mfa/totp/confirm", "/api/auth/mfa/webauthn/assert/begin",
    "/api/auth/mfa/webauthn/assert/finish", "/api/auth/mfa/webauthn/register/begin",
    "/api/auth/mfa/webauthn/register/finish",
}  # fmt: skip
#: Have a credential of their own, which is good nowhere else (reference 1, Authentication).
_SCIM: Final = "/api/scim/v2"

#: Nobody gets in here without showing something.
GUARDED: Final = [(method, path) for method, path in OPERATIONS if path.rstrip("/") not in OPEN]
#: By a credential in a header.
CLOSED: Final = [(method, path) for method, path in GUARDED if method != "POST" or path not in _SECOND_FACTOR]
SCIM: Final = [(method, path) for method, path in CLOSED if path.startswith(_SCIM)]
#: What people, their keys and OAuth clients call.
COMMON: Final = [each for each in CLOSED if each not in SCIM]
ADMIN: Final = [(method, path) for method, path in COMMON if "/admin/" in path or path.startswith("/v1/platform/")]
ADMIN_READS: Final = [(method, path) for method, path in ADMIN if method == "GET"]
ADMIN_WRITES: Final = [(method, path) for method, path in ADMIN if method != "GET"]
#: Those whose path names a row of an organization.
NAMING: Final = [(method, path) for method, path in COMMON if re.search(r"_id}|{provider}|{domain}|byoe/{id}", path)]


def filled(path: str, ids: Mapping[str, str] | None = None) -> str:
    """The path with these ids in it, or with some that nobody has."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: str(uuid4()) if ids is None else ids[found[1]], path)
