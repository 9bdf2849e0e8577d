"""What can go wrong with SCIM. `scimType` is in the extra fields (RFC 7644, 3.12)."""

from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from gatehouse.foundation.errors import BadRequest, Conflict, Forbidden, NotFound, PayloadTooLarge, Refusal

if TYPE_CHECKING:
    from scim2_models import SCIMException

#: Of a message of the library's, which may quote what was sent.
_MAX_CHARS = 500


class ScimTokenNotFound(NotFound):
    message = "SCIM token not found"


class ResourceNotFound(NotFound):
    message = "There is no such resource."


class ResourceTooLarge(PayloadTooLarge):
    message = "The resource is too large."


class NotOffered(Refusal):
    status = 501
    code = "not_implemented"
    message = "This service does not offer that part of the protocol."


class Taken(Conflict):
    code = "uniqueness"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, scimType="uniqueness")


class AddressFixed(Forbidden):
    """Whoever chooses an account's address chooses who signs in to it by single sign-on."""

    code = "address_fixed"
    message = (
        "A directory cannot change the address of an administrator or auditor, or of an account that was made here and"
        " is not linked to it. An administrator can: PATCH /api/admin/users/{user_id}."
    )


class BadScim(BadRequest):
    """`kind` is the `scimType`."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail[:_MAX_CHARS], scimType=kind)

    @classmethod
    def of(cls, error: "SCIMException | ValidationError") -> Self:
        """What the library found wrong with a body."""
        from scim2_models import Error  # noqa: PLC0415 - whoever has such an error has the library already

        cause = error if isinstance(error, ValidationError) else error.__cause__
        if isinstance(cause, ValidationError):
            told = Error.from_validation_error(cause.errors(include_input=False)[0])
            return cls(told.scim_type or "invalidValue", told.detail or "The body is not valid.")
        assert not isinstance(error, ValidationError)
        return cls(error.scim_type or "invalidValue", str(error))


class TooMany(BadScim):
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
