"""Errors of second factors."""

from gatehouse.foundation.errors import BadRequest, Conflict, Forbidden, NotFound, TooManyRequests, Unauthenticated


class InvalidMfaToken(Unauthenticated):
    code = "invalid_mfa_token"
    message = "The mfa_token is not valid, was used up, or has expired. Sign in again."
    error_format = "error_message"


class WrongCode(Unauthenticated):
    """The code is wrong or used, or the method is not enrolled. The error is the same in all cases, so that it does not
    reveal which of them applies."""

    code = "invalid_code"
    message = "This second factor is not right, or was used already."
    error_format = "error_message"


class TooManyAttempts(TooManyRequests):
    code = "too_many_attempts"
    message = "Too many wrong second factors. Wait, then try again."
    error_format = "error_message"


class NotConfirmed(BadRequest):
    code = "invalid_code"
    message = "code: this is not the current code of the secret."
    error_format = "error_message"


class BadCredential(BadRequest):
    code = "invalid_credential"
    message = "credential: this is not an answer to an open challenge of this platform."
    error_format = "error_message"


class MfaMethodNotAllowed(Forbidden):
    code = "method_not_allowed"
    message = "Your organization does not allow this method."
    error_format = "error_message"


class EnrolmentOnly(Forbidden):
    code = "second_factor_enrolled"
    message = "You have a second factor: sign in with it first."
    error_format = "error_message"


class NothingEnrolled(Conflict):
    code = "nothing_enrolled"
    message = "No second factor is enrolled."
    error_format = "error_message"


class AlreadyEnrolled(Conflict):
    code = "already_enrolled"
    message = "This passkey is enrolled already."
    error_format = "error_message"


class TooManyPasskeys(Conflict):
    code = "too_many_passkeys"
    message = "You have the maximum number of passkeys. Remove one first."
    error_format = "error_message"


class PasskeysUnavailable(Conflict):
    code = "passkeys_unavailable"
    message = "Passkeys need the platform's address: the operator must set PUBLIC_URL first (https, or localhost)."
    error_format = "error_message"


class PasskeyNotFound(NotFound):
    message = "Passkey not found"


class TotpNotFound(NotFound):
    message = "No authenticator app is enrolled"
