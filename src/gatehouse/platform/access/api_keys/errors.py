"""Errors of API keys."""

from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable


class ApiKeyNotFound(NotFound):
    message = "API key not found"


class NotAServiceAccount(Conflict):
    """An administrator tried to create a key for a person, and could act as that person with it."""

    code = "not_a_service_account"
    message = "Administrators can create keys only for service accounts. Users create their own keys."


class DisabledByAdministrator(Forbidden):
    code = "disabled_by_administrator"
    message = "An administrator disabled this key. Only an administrator can enable it again."
    error_format = "error_message"


class TooManyApiKeys(Conflict):
    code = "too_many_api_keys"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A user has at most {limit} API keys. Remove one that is not used any more.")


class KeyScopingOff(Unprocessable):
    """`scopes` was sent without the feature flag `api_key_scoping`."""

    message = "API keys cannot be scoped down unless the feature flag api_key_scoping is on."

    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("scopes", self.message)])
