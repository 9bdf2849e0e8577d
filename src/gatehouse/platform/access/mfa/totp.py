"""Time-based one-time passwords of authenticator apps (RFC 6238). All apps support SHA-1, six digits and 30 seconds."""

import hmac
from typing import Final
from uuid import UUID

import pyotp
import segno

from gatehouse.foundation.identity import TenantId

_STEP_SECONDS: Final = 30
#: A code may be one step early or late, because the phone's clock may be wrong and the user needs time to type.
_ACCEPTED_STEP_OFFSETS: Final = (0, -1, 1)
_ISSUER: Final = "Gatehouse"


def new_secret() -> str:
    """Return a new secret: 160 bits in base32."""
    return pyotp.random_base32()


def url(secret: str, account: str) -> str:
    """Return the `otpauth` URL that apps read from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=account, issuer_name=_ISSUER)


def qr_code(url: str) -> str:
    """Return the QR code of an `otpauth` URL as a data URL of an SVG image. It is dark on light in every color scheme,
    because not every camera reads the inverse."""
    image: str = segno.make(url, error="m").svg_data_uri(scale=4, border=4, dark="#000", light="#fff", omitsize=True)
    return image


def step_of(secret: str, code: str, *, now: float, after: int) -> int | None:
    """Return the time step of the code if it is later than `after`, else None. The code is compared with all accepted
    steps, so that the running time does not reveal which one matches."""
    # Many apps show a code with a space: 123 456.
    typed = "".join(code.split()).encode()
    current_step, totp, matching_step = int(now) // _STEP_SECONDS, pyotp.TOTP(secret), None
    for candidate in (current_step + offset for offset in _ACCEPTED_STEP_OFFSETS):
        is_match = hmac.compare_digest(totp.generate_otp(candidate).encode(), typed)
        if is_match and candidate > after:
            matching_step = candidate
    return matching_step


def sealing_context(tenant_id: TenantId, row_id: UUID) -> bytes:
    """Return the context that a sealed secret is bound to."""
    return f"mfa_totp:{tenant_id}:{row_id}".encode()
