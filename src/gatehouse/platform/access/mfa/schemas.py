"""Bodies of the second factors' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown
from gatehouse.platform.access.sessions.schemas import Tokens

Method = Literal["totp", "webauthn", "recovery"]
PasskeyName = Annotated[str, Field(min_length=1, max_length=100, examples=["Ada's phone"])]
#: A browser's answer as `PublicKeyCredential.toJSON()` writes it.
Credential = Annotated[
    dict[str, Any],
    Field(description="`PublicKeyCredential.toJSON()`.", examples=[{"id": "...", "type": "public-key"}]),
]


class MaybeSigningIn(Body):
    mfa_token: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=255,
            description="From the login. Without it, the session's token is needed.",
            examples=["mfa_4fJ0..."],
        ),
    ] = None


class Verification(MaybeSigningIn):
    """`code` for `totp` and `recovery`, `credential` for `webauthn`."""

    method: Method
    code: Annotated[str | None, Field(min_length=1, max_length=64, examples=["123456"])] = None
    credential: Credential | None = None


class Assertion(MaybeSigningIn):
    credential: Credential


class Confirmation(MaybeSigningIn):
    code: Annotated[str, Field(min_length=1, max_length=64, examples=["123456"])]


class Registration(MaybeSigningIn):
    name: PasskeyName = "Passkey"
    credential: Credential


class Rename(Body):
    name: PasskeyName


class TotpSecret(Shown):
    """Shown here and never again."""

    secret: Annotated[str, Field(description="Base32, to type into the app.")]
    otpauth_url: Annotated[str, Field(description="The same for a QR code.")]


class PasskeyOptions(Shown):
    public_key: Annotated[
        dict[str, Any],
        Field(
            description="For `navigator.credentials`; binary fields are base64url, as `parse...FromJSON` takes them."
        ),
    ]


class Passkey(Shown):
    id: UUID
    name: str
    synced: Annotated[bool, Field(description="It is on all devices of an account, not in one piece of hardware.")]
    created_at: datetime
    last_used_at: datetime | None


class Totp(Shown):
    created_at: datetime
    last_used_at: datetime | None


class Enrolled(Shown):
    recovery_codes: Annotated[
        list[str] | None,
        Field(description="Ten, each good once, with the first method. Shown here and never again."),
    ]
    tokens: Annotated[Tokens, Field(description="Of the login that this finishes, or of the session, stepped up.")]


class RecoveryCodes(Shown):
    recovery_codes: Annotated[list[str], Field(description="Shown here and never again; earlier ones are void.")]


class Status(Shown):
    enforcement_level: Literal["off", "optional", "required"]
    allowed_methods: list[str]
    totp: Totp | None
    passkeys: list[Passkey]
    recovery_codes_left: int
    enrollment_deadline: Annotated[
        datetime | None, Field(description="From then on a method is needed, and you have none.")
    ]
    verified_at: Annotated[datetime | None, Field(description="When this session showed a second factor.")]
    assertion_ttl_seconds: Annotated[int, Field(description="How long sensitive operations believe it.")]
