"""Passkeys and security keys (WebAuthn, level 3), judged by py_webauthn.

A challenge is in the database, for one user and one purpose, good once and for five minutes. User verification is
preferred, not asked for: this is a second factor, and plain security keys are good ones.
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
from gatehouse.platform.change import Change
from gatehouse.platform.ports import Host

log = structlog.get_logger(__name__)

REGISTER: Final = "register"
ASSERT: Final = "assert"
_STANDARD_PORTS: Final = {"http": 80, "https": 443}
_LIFETIME: Final = timedelta(minutes=5)
_TRANSPORTS: Final = {each.value for each in AuthenticatorTransport}


class Site(msgspec.Struct, frozen=True):
    """Whom a passkey is for: `rp_id` is the host's name, `origin` what the browser must have shown."""

    rp_id: str
    origin: str


def site(request: Request, host: Host) -> Site:
    """By `PUBLIC_URL`; without it a browser on this very machine can do. Raises `PasskeysUnavailable`."""
    told = urlsplit(host.settings.public_url or str(request.base_url))
    name = told.hostname or ""
    if name != "localhost" and (host.settings.public_url is None or told.scheme != "https"):
        raise PasskeysUnavailable
    # As browsers write it, however it is told: in lower case, and without the port that goes without saying.
    port = "" if told.port in {None, _STANDARD_PORTS[told.scheme]} else f":{told.port}"
    return Site(name, f"{told.scheme}://{name}{port}")


async def registration(change: Change, user: UserRow, at: Site) -> dict[str, Any]:
    """Options for `navigator.credentials.create`, as JSON."""
    options = webauthn.generate_registration_options(
        rp_id=at.rp_id,
        rp_name="Gatehouse",
        user_id=user.id.bytes,
        user_name=user.email,
        user_display_name=user.display_name or user.email,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.PREFERRED, user_verification=UserVerificationRequirement.PREFERRED
        ),
        exclude_credentials=await _known(change, user),
    )
    _ask(change, user, REGISTER, options.challenge)
    return _json(webauthn.options_to_json(options))


async def assertion(change: Change, user: UserRow, at: Site) -> dict[str, Any]:
    """Options for `navigator.credentials.get`, as JSON."""
    options = webauthn.generate_authentication_options(
        rp_id=at.rp_id,
        allow_credentials=await _known(change, user),
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    _ask(change, user, ASSERT, options.challenge)
    return _json(webauthn.options_to_json(options))


async def registered(
    change: Change, user: UserRow, at: Site, credential: dict[str, Any]
) -> VerifiedRegistration | None:
    """What an authenticator answered to `registration`; None where it is not to be believed."""
    challenge = await _taken(change, user, REGISTER, credential)
    if challenge is None:
        return None
    try:
        return webauthn.verify_registration_response(
            credential=credential, expected_challenge=challenge, expected_rp_id=at.rp_id, expected_origin=at.origin
        )
    except Exception as error:
        _log_fault(REGISTER, error)
        return None


async def asserted(change: Change, user: UserRow, at: Site, credential: dict[str, Any]) -> PasskeyRow | None:
    """The user's passkey that answered `assertion`; None where it is not to be believed. A counter that did not grow
    is a copied key's."""
    challenge = await _taken(change, user, ASSERT, credential)
    known = {row.credential_id: row for row in await table.passkeys(change.session, user.id)}
    if challenge is None:
        return None
    try:
        row = known[base64url_to_bytes(credential["id"])]
    except (KeyError, TypeError, ValueError):
        return None
    try:
        verified = webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=at.rp_id,
            expected_origin=at.origin,
            credential_public_key=row.public_key,
            credential_current_sign_count=row.sign_count,
        )
    except Exception as error:
        _log_fault(ASSERT, error)
        return None
    row.sign_count, row.last_used_at = verified.new_sign_count, utc_now()
    return row


def synced(verified: VerifiedRegistration) -> bool:
    return verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE


def transports(credential: dict[str, Any]) -> list[str]:
    """How the browser reaches the authenticator, by its own word: a hint for the next time."""
    response = credential.get("response")
    told = response.get("transports") if isinstance(response, dict) else None
    return sorted(_TRANSPORTS & {each for each in told if isinstance(each, str)}) if isinstance(told, list) else []


async def _known(change: Change, user: UserRow) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(
            id=row.credential_id, transports=[AuthenticatorTransport(each) for each in row.transports] or None
        )
        for row in await table.passkeys(change.session, user.id)
    ]


def _ask(change: Change, user: UserRow, purpose: str, challenge: bytes) -> None:
    change.session.add(
        ChallengeRow(
            challenge=challenge,
            tenant_id=user.tenant_id,
            user_id=user.id,
            purpose=purpose,
            expires_at=utc_now() + _LIFETIME,
        )
    )


async def _taken(change: Change, user: UserRow, purpose: str, credential: dict[str, Any]) -> bytes | None:
    """The open challenge that the answer names, used up whatever the answer is worth."""
    try:
        challenge = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"])).challenge
    except Exception as error:
        _log_fault(purpose, error)
        return None
    return challenge if await table.take_challenge(change.session, user.id, purpose, challenge) else None


def _log_fault(purpose: str, error: Exception) -> None:
    """A stranger's CBOR goes through several parsers, each with errors of its own. Those of WebAuthn's rules say that a
    key is wrong; any other could be a fault of ours, so the log has it: without the credential."""
    if not isinstance(error, WebAuthnException):
        log.warning("mfa.passkey_not_judged", purpose=purpose, error=type(error).__name__, exc_info=error)


def _json(text: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(text)
    return options
