"""Which fields contain a secret, and which operations may show one: at its creation, its rotation, or a sign-in."""

import re
from typing import Final

_secret = re.compile(
    r"secret|passw|passphrase|credential|(^|_)token$|(^|_)jwt$|api_?key$|(private|client|access|master)_key$|otpauth"
    r"|recovery_codes?$|(^|_)otp$|qr_code|assertion$|cookie|authorization",
    re.IGNORECASE,
).search
#: Names with one of these words that are no secrets. A `credential` is a passkey's answer, with a public key or
#: signature.
_plain = re.compile(
    r"^credential$|^authorization_url$|^cost_per_|(_id|_ids|_type|_prefix|_at|_count|_seconds|_configured|_enabled|_days|_endpoint|_servers)$",
    re.IGNORECASE,
).search

_SIGNED_IN: Final = {"access_token", "refresh_token"}

#: The operations whose answers may contain a secret, and its fields: only when the secret is created
#: (docs/authentication.md).
TELLING: Final[dict[tuple[str, str], set[str]]] = {
    ("POST", "/api/auth/login"): {*_SIGNED_IN, "mfa_token"},
    ("POST", "/api/auth/refresh"): _SIGNED_IN,
    ("POST", "/api/auth/session/token"): {"access_token"},
    ("POST", "/api/auth/mfa/verify"): _SIGNED_IN,
    ("POST", "/api/auth/mfa/webauthn/assert/finish"): _SIGNED_IN,
    ("POST", "/api/auth/mfa/webauthn/register/finish"): {*_SIGNED_IN, "recovery_codes"},
    ("POST", "/api/auth/mfa/totp"): {"secret", "otpauth_url", "qr_code"},
    ("POST", "/api/auth/mfa/totp/confirm"): {*_SIGNED_IN, "recovery_codes"},
    ("POST", "/api/auth/mfa/recovery-codes"): {"recovery_codes"},
    ("POST", "/oauth/token"): {"access_token", "id_token"},
    ("POST", "/api/auth/api-keys"): {"api_key"},
    ("POST", "/api/admin/users/{user_id}/api-keys"): {"api_key"},
    ("POST", "/api/admin/scim/token"): {"token"},
    ("POST", "/api/admin/oauth-clients/"): {"client_secret"},
    ("POST", "/api/admin/oauth-clients/{client_id}/rotate-secret"): {"new_client_secret"},
    ("POST", "/api/admin/users"): {"invitation_token"},
    ("POST", "/api/admin/users/{user_id}/password-reset"): {"token"},
    ("POST", "/api/admin/webhooks/"): {"secret"},
    ("POST", "/api/v1/admin/webhooks/"): {"secret"},
    ("POST", "/v1/platform/tenants"): {"invitation_token"},
}

#: The operations of the portal whose answers may contain a secret.
PORTAL_TELLING: Final[dict[tuple[str, str], set[str]]] = {
    ("POST", "/v1/orgs"): {"api_key"},
    ("POST", "/v1/orgs/{org_id}/tokens"): {"token"},
    ("POST", "/v1/orgs/{org_id}/members"): {"invite_token"},
    ("POST", "/v1/orgs/{org_id}/outposts"): {"client_key"},
    ("POST", "/v1/orgs/{org_id}/outposts/{outpost_id}/renew"): {"client_key"},
    **{("POST", f"/v1/auth/sso/{verb}"): {"token"} for verb in ("select-org", "accept-invite", "refresh")},
}

#: Pages with a secret in a form: the page created it, or the browser sent it.
PAGES: Final[dict[tuple[str, str], set[str]]] = {
    ("POST", "/login/enrol/app"): {"secret", "url"},
    ("POST", "/login/enrol/app/confirm"): {"secret", "url"},
    **{
        (method, path): {"token"}
        for method in ("GET", "POST")
        for path in ("/login/reset", "/login/invitation", "/login/confirm-address")
    },
}

_SHARE_LINKS: Final = "/api/conversations/{conversation_id}/share_links"
#: Shown to their owner at any time, and meant to be passed on (docs/conversations.md, Sharing).
SHOWN: Final[dict[tuple[str, str], set[str]]] = {("POST", _SHARE_LINKS): {"token"}, ("GET", _SHARE_LINKS): {"token"}}


def is_secret(name: str) -> bool:
    """Return whether a field of this name is a secret, unless it is a number or a switch."""
    return _secret(name) is not None and _plain(name) is None
