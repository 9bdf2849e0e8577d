"""What can go wrong with API keys."""

from gatehouse.foundation.errors import Conflict, FieldFault, Forbidden, NotFound, Unprocessable


class ApiKeyNotFound(NotFound):
    message = "API key not found"


class NotAServiceAccount(Conflict):
    """Whoever holds a person's key can pass for them, so people make their keys themselves."""

    code = "not_a_service_account"
    message = "Only a service account's keys are made by administrators. People make their own."


class DisabledByAdministrator(Forbidden):
    code = "disabled_by_administrator"
    message = "An administrator disabled this key: only an administrator enables it again."
    form = "error_message"


class TooManyApiKeys(Conflict):
    code = "too_many_api_keys"

    def __init__(self, limit: int) -> None:
        super().__init__(f"A user has at most {limit} API keys. Remove one that is not used any more.")


class KeyScopingOff(Unprocessable):
    """`scopes` needs the feature flag `api_key_scoping` (decisions 3)."""

    message = "API keys cannot be scoped down unless the feature flag api_key_scoping is on."

    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("scopes", self.message)])
