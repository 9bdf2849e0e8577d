"""Errors of SCIM. `scimType` is in the extra fields (RFC 7644, 3.12)."""

from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from gatehouse.foundation.errors import BadRequest, Conflict, Forbidden, NotFound, PayloadTooLarge, Refusal

if TYPE_CHECKING:
    from scim2_models import SCIMException

#: Maximum length of an error message. Messages of the library may quote the request.
_MAX_MESSAGE_CHARACTERS = 500


class ScimTokenNotFound(NotFound):
    message = "SCIM token not found"


class TooManyScimTokens(Conflict):
    code = "too_many_scim_tokens"
    message = "The organization has the maximum number of SCIM tokens. Delete one that is not used any more."


class ResourceNotFound(NotFound):
    message = "There is no such resource."


class ResourceTooLarge(PayloadTooLarge):
    message = "The resource is too large."


class NotSupported(Refusal):
    status = 501
    code = "not_implemented"
    message = "This service does not offer that part of the protocol."


class UniquenessConflict(Conflict):
    code = "uniqueness"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, scimType="uniqueness")


class AddressFixed(Forbidden):
    """The directory tried to change a protected address. The address decides which person can use the account by single
    sign-on."""

    code = "address_fixed"
    message = (
        "A directory cannot change the address of an administrator or auditor, or of an account that was created here"
        " and is not linked to it. An administrator can: PATCH /api/admin/users/{user_id}."
    )


class BadScim(BadRequest):
    """A request that violates the protocol. `scim_type` is the `scimType` of the response."""

    def __init__(self, scim_type: str, detail: str) -> None:
        super().__init__(detail[:_MAX_MESSAGE_CHARACTERS], scimType=scim_type)

    @classmethod
    def from_library(cls, error: "SCIMException | ValidationError") -> Self:
        """Return the error that corresponds to a validation error of the library."""
        from scim2_models import Error  # noqa: PLC0415 - the library is already loaded if it has raised an error

        cause = error if isinstance(error, ValidationError) else error.__cause__
        if isinstance(cause, ValidationError):
            scim_error = Error.from_validation_error(cause.errors(include_input=False)[0])
            return cls(scim_error.scim_type or "invalidValue", scim_error.detail or "The body is not valid.")
        assert not isinstance(error, ValidationError)
        return cls(error.scim_type or "invalidValue", str(error))


class FilterTooSlow(BadScim):
    def __init__(self) -> None:
        super().__init__("tooMany", "The filter takes too long: compare userName, externalId or emails by eq")


class InvalidFilter(BadScim):
    def __init__(self, detail: str) -> None:
        super().__init__("invalidFilter", detail)


class InvalidPath(BadScim):
    def __init__(self, detail: str) -> None:
        super().__init__("invalidPath", detail)


class InvalidSyntax(BadScim):
    def __init__(self, detail: str) -> None:
        super().__init__("invalidSyntax", detail)


class InvalidValue(BadScim):
    def __init__(self, detail: str) -> None:
        super().__init__("invalidValue", detail)
