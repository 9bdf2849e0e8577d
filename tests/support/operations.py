"""All operations of the OpenAPI document, and who may call them, for tests that cover all of them."""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from gatehouse.platform.worker.app import administration

#: method and path's template
Operation = tuple[str, str]

DOCUMENT: Final[dict[str, Any]] = administration()[0].openapi()
OPERATIONS: Final[list[Operation]] = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if method != "parameters"
]

#: Open to everybody, or with a credential in the body or in a cookie (docs/authentication.md).
OPEN: Final = {
    "/api/auth/login", "/api/auth/register", "/api/auth/refresh", "/api/auth/password/reset", "/oauth/token",
    "/api/auth/password/forgot", "/api/auth/email/confirm",
    "/api/auth/session/token",
    "/oauth/authorize", "/api/saml/metadata", "/api/saml/login", "/api/saml/acs", "/api/saml/slo",
    "/api/conversations/shared/{token}", "/.well-known/jwks.json", "/.well-known/openid-configuration", "/health",
    "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/mcp/{server}",
    "/api/health/live", "/api/health/ready", "/api/health/startup", "/metrics",
}  # fmt: skip
#: A person's session, or the token of a sign-in that lacks its second factor, which is in the body.
_SECOND_FACTOR: Final = {
    "/api/auth/mfa/verify", "/api/auth/mfa/totp", "/api/auth/mfa/totp/confirm", "/api/auth/mfa/webauthn/assert/begin",
    "/api/auth/mfa/webauthn/assert/finish", "/api/auth/mfa/webauthn/register/begin",
    "/api/auth/mfa/webauthn/register/finish",
}  # fmt: skip
#: Paths with credentials of their own, which are valid nowhere else (docs/scim.md, docs/outpost-protocol.md).
_SCIM: Final = "/api/scim/v2"
_OUTPOSTS: Final = "/v1/outposts/"

#: Operations that need a credential.
GUARDED: Final = [(method, path) for method, path in OPERATIONS if path.rstrip("/") not in OPEN]
#: Operations that need a credential in a header.
CLOSED: Final = [(method, path) for method, path in GUARDED if method != "POST" or path not in _SECOND_FACTOR]
SCIM: Final = [(method, path) for method, path in CLOSED if path.startswith(_SCIM)]
OUTPOSTS: Final = [(method, path) for method, path in CLOSED if path.startswith(_OUTPOSTS)]
#: Operations for people, their keys and OAuth clients.
COMMON: Final = [operation for operation in CLOSED if operation not in SCIM and operation not in OUTPOSTS]
#: Paths that a user may call: models, and their own resources. All others are for administrators and auditors.
_USERS: Final = re.compile(
    r"/(v1|api)/chat/completions|/v1/(messages(/count_tokens)?|responses(/.*)?|embeddings|completions|moderations|rerank|images/.*|audio/.*|scan|models(/.*)?)|/v2/rerank|/api/conversations(/.*)?"
    r"|/v1/(files|batches|messages/batches)(/.*)?"
    r"|/api/auth/.*|/api/users/.*|/api/access-requests(/.*)?|/oauth/userinfo|/api/providers/health|/api/v1/usage/(records(/.*)?|summary)"
    r"|/api/v1/mcp/(tools|connections(/.*)?)"
).fullmatch
ADMIN: Final = [(method, path) for method, path in COMMON if _USERS(path) is None]
ADMIN_READS: Final = [(method, path) for method, path in ADMIN if method == "GET"]
ADMIN_WRITES: Final = [(method, path) for method, path in ADMIN if method != "GET"]
#: Operations whose path names a row of an organization; the excluded parameters are the same in all organizations.
NAMING: Final = [
    (method, path) for method, path in COMMON if set(re.findall(r"\{(\w+)", path)) - {"flag_name", "key", "component"}
]
#: Operations whose path names a row of one person, which colleagues may not see. Models and people's pictures are
#: visible to everybody, and usage records to auditors.
PERSONAL: Final = [
    (method, path)
    for method, path in NAMING
    if (method, path) not in ADMIN
    and path not in {"/v1/models/{model}", "/api/users/{user_id}/avatar", "/api/v1/usage/records/{record_id}"}
]


def filled(path: str, ids: Mapping[str, str] | None = None) -> str:
    """Return the path with these ids in it, or with unknown ones."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda match: str(uuid4()) if ids is None else ids[match[1]], path)
