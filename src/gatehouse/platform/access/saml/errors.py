"""Errors of single sign-on.

SamlRefused           400 with `reason`: the response is not accepted
  InvalidSignature    the provider has not signed the whole response, or not for this platform
  AssertionExpired    the response is not valid at this time, or was already used
  UnsolicitedResponse no request preceded it, and its provider may not start sign-ins
  UnknownIssuer       the response is not from the provider that the request went to
  MissingEmail        the response does not contain an e-mail address
NotAdmitted           403 with `reason`: the response is accepted, but there is no account to sign in to
"""

from dataclasses import replace
from typing import ClassVar, Final

from gatehouse.foundation.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    Unavailable,
)
from gatehouse.foundation.http.envelopes import DETAIL
from gatehouse.platform.access import pages

#: Error form of /api/saml: missing and malformed parameters are 400; browsers get a page (docs/saml.md).
ERROR_FORMAT: Final = replace(DETAIL, validation_status=400, in_browsers=pages.ERROR_FORMAT)


class IdpNotFound(NotFound):
    message = "Identity provider not found"


class EntityIdTaken(Conflict):
    code = "entity_id_taken"
    message = "entity_id: the organization has an identity provider with this entity id."


class AdministratorRequired(Forbidden):
    message = (
        "Only an administrator in person can configure identity providers, because a provider can sign in as any user"
        " of the organization. OAuth clients, and API keys with scopes, cannot."
    )


class TooManyIdps(Conflict):
    code = "too_many_identity_providers"
    message = "The organization has the maximum number of identity providers."


class PublicUrlMissing(Unavailable):
    code = "public_url_missing"
    message = "Single sign-on needs the platform's address: set PUBLIC_URL. Without it, it works on loopback only."


class SamlBusy(Unavailable):
    code = "saml_busy"
    message = "Too many sign-ins at once; try again in a moment."


class SamlRefused(BadRequest):
    """The response is not accepted and no session is opened. The message identifies the cause. The audit chain records
    it too."""

    reason: ClassVar[str] = "invalid_signature"
    message = "The identity provider's answer is not valid."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, reason=self.reason)


class InvalidSignature(SamlRefused):
    reason = "invalid_signature"


class AssertionExpired(SamlRefused):
    reason = "assertion_expired"
    message = "The identity provider's answer is not valid at this time. Sign in again."


class UnsolicitedResponse(SamlRefused):
    reason = "unsolicited_response"
    message = (
        "This sign-in began at the identity provider, which is not allowed for it (allow_idp_initiated). Begin it here:"
        " GET /api/saml/login."
    )


class UnknownIssuer(SamlRefused):
    reason = "unknown_issuer"
    message = "The answer is not from an active identity provider of this platform."


class MissingEmail(SamlRefused):
    reason = "missing_email"
    message = "The identity provider's answer has no e-mail address."


class NotAdmitted(Forbidden):
    code = "not_admitted"
    message = "You have no active account here that this identity provider may sign in to. Ask your administrator."

    def __init__(self) -> None:
        super().__init__(reason=self.code)
