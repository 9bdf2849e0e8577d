"""What can go wrong with API keys."""

from gatehouse.foundation.errors import FieldFault, NotFound, Unprocessable


class ApiKeyNotFound(NotFound):
    message = "API key not found"


class KeyScopingOff(Unprocessable):
    """`scopes` needs the feature flag `api_key_scoping` (decisions 3)."""

    message = "API keys cannot be scoped down unless the feature flag api_key_scoping is on."

    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("scopes", self.message)])
