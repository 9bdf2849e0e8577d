"""What can go wrong with API keys."""

from gatehouse.foundation.errors import Forbidden, NotFound


class ApiKeyNotFound(NotFound):
    message = "API key not found"


class KeyScopingOff(Forbidden):
    """`scopes` needs the feature flag `api_key_scoping` (decisions 3)."""

    status = 422
    code = "validation_error"
    message = "scopes: API keys cannot be scoped down unless the feature flag api_key_scoping is on."
