"""Passkeys and security keys (WebAuthn, level 3), verified by py_webauthn.

A challenge is stored in the database for one user and one purpose. It is valid once and for five minutes. User
verification is preferred but not required, because plain security keys are sufficient as a second factor.
"""

import json
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import structlog
import webauthn
from fastapi import Request
from webauthn.helpers import base64url_to_bytes, parse_client_data_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from webauthn.registration.verify_registration_response import VerifiedRegistration

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.mfa import table
from gatehouse.platform.access.mfa.errors import PasskeysUnavailable
from gatehouse.platform.access.mfa.table import ChallengeRow, PasskeyRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.ports import Host

log = structlog.get_logger(__name__)

REGISTER_PURPOSE: Final = "register"
ASSERT_PURPOSE: Final = "assert"
_STANDARD_PORTS: Final = {"http": 80, "https": 443}
_CHALLENGE_LIFETIME: Final = timedelta(minutes=5)
_TRANSPORTS: Final = {transport.value for transport in AuthenticatorTransport}


class RelyingParty(msgspec.Struct, frozen=True):
    """The site that passkeys are bound to. `rp_id` is the host name, `origin` is the origin that browsers report."""

    rp_id: str
    origin: str


def relying_party(request: Request, host: Host) -> RelyingParty:
    """Return the relying party at PUBLIC_URL, or at localhost without one. Raises `PasskeysUnavailable`."""
    url = urlsplit(host.settings.public_url or str(request.base_url))
    name = url.hostname or ""
    if name != "localhost" and (host.settings.public_url is None or url.scheme != "https"):
        raise PasskeysUnavailable
    # The form that browsers use: lower case, without a standard port.
    port = "" if url.port in {None, _STANDARD_PORTS[url.scheme]} else f":{url.port}"
    return RelyingParty(name, f"{url.scheme}://{name}{port}")


async def registration_options(change: Change, user: UserRow, rp: RelyingParty) -> dict[str, Any]:
    """Store a challenge and return the options for `navigator.credentials.create`, as JSON."""
    options = webauthn.generate_registration_options(
        rp_id=rp.rp_id,
        rp_name="Gatehouse",
        user_id=user.id.bytes,
        user_name=user.email,
        user_display_name=user.display_name or user.email,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.PREFERRED, user_verification=UserVerificationRequirement.PREFERRED
        ),
        exclude_credentials=await _credential_descriptors(change, user),
    )
    _store_challenge(change, user, REGISTER_PURPOSE, options.challenge)
    return _parse_options(webauthn.options_to_json(options))


async def assertion_options(change: Change, user: UserRow, rp: RelyingParty) -> dict[str, Any]:
    """Store a challenge and return the options for `navigator.credentials.get`, as JSON."""
    options = webauthn.generate_authentication_options(
        rp_id=rp.rp_id,
        allow_credentials=await _credential_descriptors(change, user),
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    _store_challenge(change, user, ASSERT_PURPOSE, options.challenge)
    return _parse_options(webauthn.options_to_json(options))


async def verify_registration(
    change: Change, user: UserRow, rp: RelyingParty, credential: dict[str, Any]
) -> VerifiedRegistration | None:
    """Return the verified response to `registration_options`; None if it is not valid."""
    challenge = await _take_challenge(change, user, REGISTER_PURPOSE, credential)
    if challenge is None:
        return None
    try:
        return webauthn.verify_registration_response(
            credential=credential, expected_challenge=challenge, expected_rp_id=rp.rp_id, expected_origin=rp.origin
        )
    except Exception as error:
        _log_unexpected_error(REGISTER_PURPOSE, error)
        return None


async def verify_assertion(
    change: Change, user: UserRow, rp: RelyingParty, credential: dict[str, Any]
) -> PasskeyRow | None:
    """Return the user's passkey that answered `assertion_options`; None if the response is not valid. A response whose
    sign count did not grow is not valid, because the key may have been copied."""
    challenge = await _take_challenge(change, user, ASSERT_PURPOSE, credential)
    passkeys_by_id = {row.credential_id: row for row in await table.passkeys(change.session, user.id)}
    if challenge is None:
        return None
    try:
        row = passkeys_by_id[base64url_to_bytes(credential["id"])]
    except (KeyError, TypeError, ValueError):
        return None
    try:
        verified = webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=rp.rp_id,
            expected_origin=rp.origin,
            credential_public_key=row.public_key,
            credential_current_sign_count=row.sign_count,
        )
    except Exception as error:
        _log_unexpected_error(ASSERT_PURPOSE, error)
        return None
    row.sign_count, row.last_used_at = verified.new_sign_count, utc_now()
    return row


def is_synced(verified: VerifiedRegistration) -> bool:
    return verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE


def transports_of(credential: dict[str, Any]) -> list[str]:
    """Return the transports that the browser reports for the authenticator. They are an unverified hint."""
    response = credential.get("response")
    transports = response.get("transports") if isinstance(response, dict) else None
    if not isinstance(transports, list):
        return []
    return sorted(_TRANSPORTS & {transport for transport in transports if isinstance(transport, str)})


async def _credential_descriptors(change: Change, user: UserRow) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=row.credential_id, transports=[AuthenticatorTransport(transport) for transport in row.transports] or None
        )
        for row in await table.passkeys(change.session, user.id)
    ]


def _store_challenge(change: Change, user: UserRow, purpose: str, challenge: bytes) -> None:
    change.session.add(
        ChallengeRow(
            challenge=challenge,
            tenant_id=user.tenant_id,
            user_id=user.id,
            purpose=purpose,
            expires_at=utc_now() + _CHALLENGE_LIFETIME,
        )
    )


async def _take_challenge(change: Change, user: UserRow, purpose: str, credential: dict[str, Any]) -> bytes | None:
    """Return the open challenge that the response names, and use it up even if the response is not valid."""
    try:
        challenge = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"])).challenge
    except Exception as error:
        _log_unexpected_error(purpose, error)
        return None
    return challenge if await table.take_challenge(change.session, user.id, purpose, challenge) else None


def _log_unexpected_error(purpose: str, error: Exception) -> None:
    """Log an error that may be a bug of this platform, without the credential. Errors of py_webauthn are not logged,
    because they mean that the credential is wrong. Other errors come from the parsers of the client's CBOR."""
    if not isinstance(error, WebAuthnException):
        log.warning("mfa.passkey_not_judged", purpose=purpose, error=type(error).__name__, exc_info=error)


def _parse_options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(text)
    return options
