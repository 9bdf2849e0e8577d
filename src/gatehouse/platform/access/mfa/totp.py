"""Authenticator apps: time-based one-time passwords (RFC 6238; SHA-1, six digits, 30 s, which all apps take)."""

import hmac
from typing import Final
from uuid import UUID

import pyotp

from gatehouse.foundation.identity import TenantId

_STEP_SECONDS: Final = 30
#: The phone's clock, and whoever types, may be one step late or early.
_NEIGHBOURS: Final = (0, -1, 1)
_ISSUER: Final = "Gatehouse"


def new_secret() -> str:
    """160 bits, in base32."""
    return pyotp.random_base32()


def url(secret: str, account: str) -> str:
    """What apps read from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=account, issuer_name=_ISSUER)


def step_of(secret: str, code: str, *, now: float, after: int) -> int | None:
    """The step whose code this is, if it is a newer one than `after`. All are compared, so time tells nothing."""
    # As many apps show it: 123 456.
    typed = "".join(code.split()).encode()
    step, totp, found = int(now) // _STEP_SECONDS, pyotp.TOTP(secret), None
    for tried in (step + offset for offset in _NEIGHBOURS):
        right = hmac.compare_digest(totp.generate_otp(tried).encode(), typed)
        if right and tried > after:
            found = tried
    return found


def context(tenant_id: TenantId, row_id: UUID) -> bytes:
    """What a sealed secret is bound to."""
    return f"mfa_totp:{tenant_id}:{row_id}".encode()
