"""Request and response bodies of the second factors' endpoints."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.platform.access.sessions.schemas import Tokens

Method = Literal["totp", "webauthn", "recovery"]
PasskeyName = Annotated[str, Field(min_length=1, max_length=100, examples=["Ada's phone"])]
#: A browser's response, as `PublicKeyCredential.toJSON()` returns it.
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
            description="The `mfa_token` of the login. Without it, the request needs the session's access token.",
            examples=["mfa_4fJ0..."],
        ),
    ] = None


class Verification(MaybeSigningIn):
    """A second factor. `totp` and `recovery` need `code`, `webauthn` needs `credential`."""

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


class TotpSecret(ResponseBody):
    """The secret of an authenticator app. It is shown only once."""

    secret: Annotated[str, Field(description="Base32, to type into the app.")]
    otpauth_url: Annotated[str, Field(description="The secret as an `otpauth` URL.")]
    qr_code: Annotated[str, Field(description="The QR code of `otpauth_url`: an SVG image as a `data` URL.")]


class PasskeyOptions(ResponseBody):
    public_key: Annotated[
        dict[str, Any],
        Field(description="For `navigator.credentials`. Binary fields are base64url, as `parse...FromJSON` expects."),
    ]


class Passkey(ResponseBody):
    id: UUID
    name: str
    synced: Annotated[
        bool,
        Field(description="Whether software syncs the passkey between devices. If not, it is bound to one device."),
    ]
    created_at: datetime
    last_used_at: datetime | None


class Totp(ResponseBody):
    created_at: datetime
    last_used_at: datetime | None


class Enrolled(ResponseBody):
    recovery_codes: Annotated[
        list[str] | None,
        Field(
            description="Ten codes, each valid once, if this is the first method; else null. They are shown only once."
        ),
    ]
    tokens: Annotated[Tokens, Field(description="Tokens of the finished login, or of the stepped-up session.")]


class RecoveryCodes(ResponseBody):
    recovery_codes: Annotated[list[str], Field(description="Ten codes, each valid once. They are shown only once.")]


class Status(ResponseBody):
    enforcement_level: Literal["off", "optional", "required"]
    allowed_methods: list[str]
    totp: Totp | None
    passkeys: list[Passkey]
    recovery_codes_left: int
    enrollment_deadline: Annotated[
        datetime | None, Field(description="From this time on you need a second factor; null if you have one.")
    ]
    verified_at: Annotated[datetime | None, Field(description="When this session last verified a second factor.")]
    assertion_ttl_seconds: Annotated[
        int, Field(description="How long sensitive operations accept a verification, in seconds.")
    ]
